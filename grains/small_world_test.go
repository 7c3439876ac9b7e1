//go:build !race

package grains

import (
	"errors"
	"fmt"
	"slices"
)

const grainName = "kind/a"

// begin is the state in which no process is a member.
func (s *setting) begin() *smallWorld {
	return &smallWorld{setting: s, redis: model{leases: make([]bool, 1, 8)}}
}

// CopyTo implements explore.World.
func (w *smallWorld) CopyTo(other *smallWorld) {
	late, leases := append(other.late[:0], w.late...), append(other.redis.leases[:0], w.redis.leases...)
	*other = *w
	other.late, other.redis.leases = late, leases
	for i := range other.members {
		m := &other.members[i]
		old := m.all[grainName]
		m.all = nil
		if old == nil {
			continue
		}
		it := m.add(grainName)
		it.runs, it.token = old.runs, old.token
		it.stopping.Store(old.stopping.Load())
		if m.call != nil {
			call := *m.call
			call.it, m.call = it, &call
		}
	}
}

// runs returns the activation that runs; nil if none does.
func (m *smallMember) runs() *activation[int] {
	if it := m.all[grainName]; it != nil && it.runs {
		return it
	}
	return nil
}

func (m *smallMember) serves() bool { return m.at == fresh && !m.gone }

// Moves implements explore.World.
func (w *smallWorld) Moves(list []smallMove) []smallMove {
	for i := range w.members {
		m := &w.members[i]
		may := func(d doing, when bool) {
			if when {
				list = append(list, smallMove{does: d, i: int8(i)})
			}
		}
		it := m.runs()
		may(joins, m.id == 0 && m.terms < w.terms)
		if m.id == 0 {
			continue
		}
		if m.serves() && m.asked < w.asks && m.all[grainName] == nil {
			list = append(list, smallMove{asks, int8(i), modelEntry{}})
			if entry := w.redis.entries[0]; entry.token != 0 {
				list = append(list, smallMove{asks, int8(i), entry})
			}
		}
		may(executes, m.call != nil && !m.call.done)
		may(replies, m.call != nil && m.call.done)
		may(givesUp, m.call != nil && w.lates < w.setting.late)
		may(beginsMessage, it != nil && !m.handling && it.begins(m.serves() || w.control == "no guard"))
		may(endsMessage, m.handling)
		may(beginsToStop, it != nil && !m.handling && !it.stopping.Load())
		may(stops, it != nil && it.stopping.Load())
		may(ends, !m.over)
		may(closes, m.over && !m.gone && m.at > fresh)
		may(releases, m.over && (len(m.all) == 0 || w.control == "release before the stop" && w.redis.leases[m.id]))
		may(ages, m.at < drained || m.at < ended && (w.pauses || it == nil))
		may(renews, m.at == drained)
		may(dies, w.kills && !w.killed)
	}
	for id := int8(1); int(id) < len(w.redis.leases); id++ {
		if w.redis.leases[id] && (w.owner(id) == nil || w.owner(id).at == ended) {
			list = append(list, smallMove{does: expires, i: id})
		}
		if !w.redis.leases[id] && w.redis.entries[0].member == id {
			list = append(list, smallMove{does: buries, i: id})
		}
	}
	for i := range w.late {
		list = append(list, smallMove{does: executesLate, i: int8(i)})
		if w.repeated < w.repeats {
			list = append(list, smallMove{does: repeatsLate, i: int8(i)})
		}
	}
	return list
}

// owner returns the member whose term has that number.
func (w *smallWorld) owner(id int8) *smallMember {
	for i := range w.members {
		if w.members[i].id == id {
			return &w.members[i]
		}
	}
	return nil
}

// Describe implements explore.World.
func (w *smallWorld) Describe(a smallMove) string {
	switch {
	case a.does == executesLate, a.does == repeatsLate:
		return fmt.Sprintf("%v: %+v", a.does, w.late[a.i])
	case a.does == expires, a.does == buries:
		return fmt.Sprintf("term %d %v", a.i, a.does)
	case a.does == asks:
		return fmt.Sprintf("member %d %v, where the entry is %v", a.i, a.does, a.with)
	}
	return fmt.Sprintf("member %d %v", a.i, a.does)
}

func (w *smallWorld) violated(format string, args ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, args...)
	}
}

// Try implements explore.World.
func (w *smallWorld) Try(a smallMove) error {
	w.do(a)
	w.late = slices.DeleteFunc(w.late, func(c lateCommand) bool { // a command that can no longer have an effect
		return c.register && !w.redis.leases[c.member] || !c.register && c.entry != w.redis.entries[0] && w.control != "unregister without the token"
	})
	return w.violation
}

func (w *smallWorld) do(a smallMove) {
	switch a.does {
	case expires:
		w.redis.leases[a.i] = false
		return
	case buries:
		w.redis.bury()
		return
	case executesLate, repeatsLate:
		c := w.late[a.i]
		if a.does == repeatsLate {
			w.repeated++
		} else {
			w.late = slices.Delete(w.late, int(a.i), int(a.i)+1)
		}
		switch now := w.redis.entries[0]; {
		case c.register:
			w.register(c.member, c.entry)
		case w.control == "unregister without the token" && now.member == c.entry.member:
			w.redis.unregister(0, now)
		default:
			w.redis.unregister(0, c.entry)
		}
		return
	}
	m := &w.members[a.i]
	it := m.all[grainName]
	switch a.does {
	case joins:
		m.terms++
		m.id = int8(len(w.redis.leases))
		w.redis.leases = append(w.redis.leases, true)
		m.begin()
	case asks:
		m.asked++
		if it, _, register := m.ask(grainName, 1); register {
			m.call = &smallCall{it: it, expected: a.with}
			if w.control == "start before the registration" {
				w.starts(m, it, w.newest+1)
			}
		}
	case executes:
		m.call.done, m.call.token = true, w.register(m.id, m.call.expected)
	case replies, givesUp:
		call := m.call
		m.call = nil
		if a.does == givesUp {
			w.lates++
			if !call.done {
				w.late = append(w.late, lateCommand{true, m.id, call.expected})
			} else if call.token != 0 {
				m.older = call.token
			}
			call.token = 0
		} else if call.token == 0 && w.control == "the reply of another call" {
			call.token, m.older = m.older, 0
		}
		if w.control == "start before the registration" && call.it.runs {
			return
		}
		switch starts := m.registered(call.it, int64(call.token)); {
		case starts && (m.serves() || w.control == "start without a look at the lease"):
			w.starts(m, call.it, call.token)
		case starts:
			m.stopped(call.it, true)
			fallthrough
		default:
			w.unregister(m, call.it)
		}
	case beginsMessage:
		m.handling = true
		if int8(it.token) < w.newest {
			w.violated("the activation %d begins a message after %d has started", it.token, w.newest)
		}
		if m.at != fresh {
			w.violated("a message begins past T − D")
		}
	case endsMessage:
		m.handling = false
	case beginsToStop:
		it.stopping.Store(true)
	case stops:
		m.stopped(it, m.at < ended || w.control == "late stops are not counted")
		w.unregister(m, it)
	case ends:
		m.over = true
		m.close()
	case closes:
		m.gone = true
	case releases:
		w.redis.leases[m.id] = false
		if len(m.all) > 0 {
			return // the control
		}
		if m.overlaps && m.activations.late == 0 {
			w.violated("two activations were alive, and nothing was reported")
		}
		w.leaves(m)
	case ages:
		m.at++
	case renews:
		m.at = fresh
	case dies:
		w.killed = true
		if m.call != nil && !m.call.done {
			w.late = append(w.late, lateCommand{true, m.id, m.call.expected})
		}
		w.leaves(m)
	}
}

// leaves ends the term of a process, which may join again.
func (w *smallWorld) leaves(m *smallMember) { *m = smallMember{terms: m.terms, asked: m.asked} }

func (w *smallWorld) register(member int8, expected modelEntry) (token int8) {
	if other := expected.member; w.control == "no look at the other lease" && other != 0 && other != member {
		lasts := w.redis.leases[other]
		w.redis.leases[other] = false
		defer func() { w.redis.leases[other] = lasts }()
	}
	_, token = w.redis.register(0, member, expected)
	return token
}

func (w *smallWorld) unregister(m *smallMember, it *activation[int]) {
	if it.token != 0 {
		w.late = append(w.late, lateCommand{false, m.id, modelEntry{m.id, int8(it.token)}})
	}
}

// starts notes the start of an activation.
func (w *smallWorld) starts(m *smallMember, it *activation[int], token int8) {
	it.runs, it.token = true, int64(token)
	if !m.open {
		w.violated("the activation %d starts in a term that ends", token)
	}
	if token <= w.newest {
		w.violated("the activation %d starts after %d", token, w.newest)
	}
	w.newest = token
	for i := range w.members {
		other := &w.members[i]
		if other == m || other.runs() == nil {
			continue
		}
		other.overlaps = true
		if !w.pauses || other.at < ended {
			w.violated("the activation %d starts alongside %d", token, other.runs().token)
		}
	}
}

// Settle implements explore.World: without further faults, a process that asks for the grain gets it.
func (w *smallWorld) Settle() error {
	w.late = nil
	for i := range w.members {
		m := &w.members[i]
		if m.at > fresh { // it ends its term, and begins another
			m.at, m.over = ended, true
			m.close()
		}
		for id := range w.redis.leases { // of killed processes
			if w.owner(int8(id)) == nil {
				w.redis.leases[id] = false
			}
		}
		move := func(d doing) { w.do(smallMove{does: d, i: int8(i)}) }
		if m.call != nil {
			if !m.call.done {
				move(executes)
			}
			move(replies)
		}
		if it := m.runs(); it != nil && (m.over || it.stopping.Load()) {
			it.stopping.Store(true)
			move(stops)
		}
		if m.over {
			move(releases)
		}
		if m.id == 0 {
			move(joins)
		}
	}
	at := &w.members[0]
	for range 3 {
		if at.runs() != nil {
			return w.violation
		}
		entry := w.redis.entries[0]
		if other := w.owner(entry.member); entry.token != 0 && other != nil {
			at = other
		}
		if at.runs() == nil {
			i := int8(0)
			if at != &w.members[0] {
				i = 1
			}
			w.do(smallMove{asks, i, entry})
			w.do(smallMove{does: executes, i: i})
			w.do(smallMove{does: replies, i: i})
		}
	}
	return errors.New("a process that asks for the grain gets none")
}
