package lock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// TestExplore tries every sequence of events in each scenario, up to a number of states; see explore.All.
func TestExplore(t *testing.T) {
	var all []explore.Scenario[*world]
	for _, s := range scenarios() {
		all = append(all, s.scenario())
	}
	explore.All(t, all)
}

// The rules hold because one actor owns a key. With two actors, each takes the other's live term for a forgotten one
// of its own, and releases it. The exploration finds that.
func TestExplore_NoticesTwoActorsOnOneKey(t *testing.T) {
	for _, s := range scenarios() {
		if s.name != "plain, three clients and a fault" && s.name != "plain and fenced, four clients" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			s.twoActors = true
			explore.Notices(t, s.scenario(), 50_000)
		})
	}
}

func (s *setting) scenario() explore.Scenario[*world] {
	return explore.Scenario[*world]{Name: s.name, Begin: func() *world {
		w := newWorld(s, nil, s.processCount)
		for _, first := range s.begin {
			for w.do(first); len(w.net) > 0; {
				w.do(move{action: delivers})
			}
		}
		return w
	}}
}

// Moves appends the possible next events to a list.
func (w *world) Moves(list []move) []move {
	ticking := false
	_, passing := w.nextTime()
	list = w.deliveries(list)
	for i := range w.processes {
		p := &w.processes[i]
		if p.dead {
			continue
		}
		ticking = ticking || !p.stalled && p.wakeAt != never && p.wakeAt <= w.now
		for act := acquire; act < deletes; act++ {
			for c := range callers {
				if (c == 0 || act <= ensure) && w.may(act, i, c) {
					list = append(list, move{action: act, p: int8(i), i: int8(c)})
				}
			}
		}
	}
	for act := deletes; act < passes; act++ {
		for part := range w.redis.Parts() {
			if w.can(actions[act].counts) && (part == 0 || act == deletes) && (act != deletes || !w.redis.Part(part).Free()) {
				list = append(list, move{action: act, p: int8(part)})
			}
		}
	}
	busy := slices.ContainsFunc(w.net, func(m message) bool { return m.kind != lateCommand && m.kind != foreignStep })
	if passing && !ticking && (w.times == 0 || int(w.counted[times]) < w.times && !busy) {
		list = append(list, move{action: passes})
	}
	return list
}

// deliveries appends the possible deliveries of the messages on their way. Messages of one process and one kind keep
// their order, unless the setting says otherwise.
func (w *world) deliveries(list []move) []move {
	for k := range w.net {
		m := &w.net[k]
		bound := m.kind >= reply && m.kind <= subscribed // for a process
		waits := w.overtakes(k) && m.kind != lateCommand && (m.kind > reply || !w.can(outOfOrder))
		if waits || bound && (w.processes[m.p].stalled || w.processes[m.p].dead) {
			continue
		}
		for f := range fates {
			if fault, ok := w.faultOf(m, f); f == fine || ok && w.can(fault) && !w.processes[m.p].dead {
				list = append(list, move{action: delivers, i: int8(k), fate: f})
			}
		}
	}
	return list
}

// overtakes reports whether an earlier message of the same process and kind than message k is still on its way.
func (w *world) overtakes(k int) bool {
	m := &w.net[k]
	return slices.ContainsFunc(w.net[:k], func(other message) bool { return other.p == m.p && other.kind == m.kind })
}

// may reports whether an action of a process, or of its caller, is possible now.
func (w *world) may(act action, i, c int) bool {
	p := &w.processes[i]
	h := slices.IndexFunc(p.holds, func(h hold) bool { return int(h.caller) == c })
	r := slices.IndexFunc(p.requests, func(r request) bool { return int(r.caller) == c && r.what != cancel })
	waits := r >= 0 && p.requests[r].what == acquire
	holds := h >= 0 && !p.holds[h].dead && r < 0
	switch {
	case act == restarts:
		return p.stalled
	case p.stalled || !w.can(actions[act].counts) || act <= ensure && w.callers[i][c].Owner == 0:
		return false
	}
	switch act {
	case acquire:
		return !p.asked[c]
	case release:
		return holds && p.holds[h].counts.exclusive > 0
	case releaseRead:
		return holds && p.holds[h].counts.shared > 0
	case reenter, ensure, extend:
		return holds
	case cancel:
		return h < 0 && waits
	case ownerDies:
		return waits || h >= 0 && !p.holds[h].dead
	case closes:
		return !p.closed
	case ticks:
		return p.wakeAt != never && p.wakeAt <= w.now
	case isPaused:
		_, passing := w.nextTime()
		return passing && w.may(ticks, i, c)
	}
	return true
}

// Try carries out a move, and checks the rules.
func (w *world) Try(a move) (err error) {
	defer w.recoverViolation(&err)
	w.do(a)
	w.check()
	return nil
}

// nextTime returns the time of the next timer or end of a lease.
func (w *world) nextTime() (at machine.Instant, ok bool) {
	soon := func(t machine.Instant, is bool) {
		if is && t > w.now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for i := range w.processes {
		if p := &w.processes[i]; !p.dead {
			soon(p.wakeAt, p.wakeAt != never)
		}
	}
	soon(w.redis.NextEnd())
	return at, ok
}

// Settle runs a world to its end without more faults.
func (w *world) Settle() (err error) {
	defer w.recoverViolation(&err)
	w.endFaults()
	return nil
}

// encoder encodes worlds, and the locks in them as a digest.
type encoder struct {
	redismodel.Encoder
	digest *explore.Digest
}

func (e *encoder) Ref(of any) {
	r, ok := of.(ref)
	if !ok {
		e.Number(0)
		return
	}
	e.Number(int64(r.what)<<4 + int64(r.caller) + 2)
}

// Hash differs for worlds with different possible events.
func (w *world) Hash() uint64 {
	e := &w.setting.encoder
	e.Begin(w.now)
	e.Placed = func(c redismodel.Client, seq uint64) int64 {
		for i := range w.processes {
			if p := &w.processes[i]; p.client == c {
				return p.lock.EntryIndex(seq)
			}
		}
		return -1
	}
	w.redis.Encode(&e.Encoder)
	for f := range free {
		e.Number(int64(w.used(f)))
	}
	for i := range w.processes {
		p := &w.processes[i]
		e.For(p.client)
		for kind := command; kind <= foreignStep; kind++ {
			e.Number(int64(w.underWay(i, kind)))
			for k := range w.net {
				if m := &w.net[k]; m.p == i && m.kind == kind {
					w.encode(e, m)
				}
			}
		}
		if e.Bool(p.dead); !p.dead {
			w.encodeTokens(e, p)
			p.encode(e, w.now, w.factOf(w.owner(i, p.lock.Summary().Term)).keyLost)
		}
	}
	return e.Sum()
}

// encodeTokens encodes how far the counters are behind the tokens that a process has had.
func (w *world) encodeTokens(e *encoder, p *process) {
	seen := p.lock.Seen()
	for i, part := range w.redis.Parts() {
		if k := w.setup.Kinds[i]; len(seen) > 0 && (k == redismodel.Fenced || k == redismodel.Plain && len(w.setup.Kinds) == 1) {
			e.Number(max(seen[0]-part.Tokens, 0))
			seen = seen[1:]
		}
	}
}

func (w *world) encode(e *encoder, m *message) {
	p := &w.processes[m.p]
	switch m.kind {
	case subscribing, subscribed:
		e.Term(m.term)
	case command, lateCommand:
		c := &m.command
		for _, n := range []int64{
			int64(p.lock.LastSeq() - c.Seq), int64(c.Kind), int64(c.Count), int64(c.Shared), int64(c.Mode), int64(c.Lease), c.Tokens, int64(p.terms - c.Top),
		} {
			e.Number(n)
		}
		e.Term(c.Term)
		e.Term(c.Behind)
		for _, b := range []bool{c.Notified, c.Entry.Listens, c.Forced, c.Take} {
			e.Bool(b)
		}
		if e.Term(c.Entry.Term); c.Entry.Term != 0 {
			e.Number(int64(c.Entry.Mode))
			e.Number(c.Entry.Tokens)
			e.Number(p.lock.EntryIndex(c.Seq))
		}
		e.Number(int64(len(c.Owners)))
		for _, name := range c.Owners {
			var owner redismodel.Owner
			_, _ = fmt.Sscanf(name, "%d:%d", &owner.Client, &owner.Term)
			e.Owner(owner)
		}
		for _, entry := range c.Entries {
			e.Term(entry.Term)
			e.Number(int64(entry.Lease))
			e.Bool(entry.Try)
		}
	case transferred:
		e.Term(m.transfer.Term)
		e.Number(p.lock.EntryIndex(m.transfer.Seq))
	case reply:
		r := &m.result
		for _, n := range []int64{int64(p.lock.LastSeq() - m.command.Seq), int64(r.Outcome), int64(r.TTL / ms), int64(r.Others)} {
			e.Number(n)
		}
		e.Term(r.OwnTerm)
		for _, b := range []bool{r.Taken, r.Freed, r.Transient, r.WasHeld, r.Holder != ""} {
			e.Bool(b)
		}
	}
}

func (p *process) encode(e *encoder, now machine.Instant, keyLost bool) {
	for _, b := range append(p.asked[:], p.closed, p.stalled, keyLost, p.listening, p.reachable) {
		e.Bool(b)
	}
	e.Term(p.channel)
	for _, r := range p.requests {
		e.Ref(r.ref)
		e.Number(int64(r.mode))
	}
	for _, h := range p.holds {
		e.Ref(h.ref)
		e.Number(int64(h.counts.exclusive))
		e.Number(int64(h.counts.shared))
		e.Bool(h.dead)
		e.Instant(h.bound)
	}
	e.Bool(p.lock.OrderChanged())
	last := explore.Last{Number: p.ids, Sequence: p.lock.LastSeq(), Term: e.Named}
	e.Number(int64(e.digest.Sum(now, &p.lock, last)))
}
