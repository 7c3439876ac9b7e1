package singleton

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

func (s *setting) begin() *small {
	s.digest = explore.NewDigest(meanings)
	w := &small{setting: s, now: time.Second, redis: Whereabouts{Left: map[string]map[string]uint64{}}}
	limits := Limits{Buffer: cmp.Or(s.buffer, 10), Wait: s.wait, Poll: time.Second}
	for i := range s.senders {
		w.proxies = append(w.proxies, worldProxy{outbox: Outbox[int]{Proxy: fmt.Sprint("proxy", i), Limits: limits}})
	}
	return w
}

// CopyTo implements explore.World.
func (w *small) CopyTo(other *small) {
	*other = *w
	other.late = slices.Clone(w.late)
	other.proxies = slices.Clone(w.proxies)
	for i := range other.proxies {
		p := &other.proxies[i]
		p.outbox.queue = slices.Clone(p.outbox.queue)
		p.toGate, p.fromGate = slices.Clone(p.toGate), slices.Clone(p.fromGate)
		p.begun, p.refused = slices.Clone(p.begun), slices.Clone(p.refused)
	}
	other.gates = slices.Clone(w.gates)
	for i := range other.gates {
		g := &other.gates[i]
		g.mail = slices.Clone(g.mail)
		accounts := make(map[string]*account[int], len(g.ledger.proxies))
		for proxy, a := range g.ledger.proxies {
			clone := *a
			accounts[proxy] = &clone
		}
		g.ledger.proxies = accounts
	}
}

// nextWake returns when the next proxy has a tick; 0 if none has.
func (w *small) nextWake() (next time.Duration) {
	for i := range w.proxies {
		if at, due := w.proxies[i].outbox.NextWake(); due && (next == 0 || at < next) {
			next = max(at, w.now)
		}
	}
	return next
}

// Moves implements explore.World.
func (w *small) Moves(list []smallMove) []smallMove {
	may := func(d doing, i int, when bool) {
		if when {
			list = append(list, smallMove{d, i})
		}
	}
	can := func(spent int, most int8) bool { return w.spent[spent] < most }
	busy := false
	for i := range w.proxies {
		p := &w.proxies[i]
		at, due := p.outbox.NextWake()
		due = due && at <= w.now
		busy = busy || due || len(p.toGate)+len(p.fromGate) > 0 || p.looks
		may(adds, i, p.sent < w.messages)
		may(toGate, i, len(p.toGate) > 0)
		may(fromGate, i, len(p.fromGate) > 0)
		may(reads, i, p.looks && p.look == nil)
		may(looks, i, p.looks && p.look != nil)
		may(failsToLook, i, p.looks && can(spentLosses, w.losses))
		may(ticks, i, due)
		may(breaks, i, len(p.toGate) > 0 && can(spentLosses, w.losses))
		may(breaksBoth, i, len(p.fromGate) > 0 && can(spentLosses, w.losses))
	}
	for i := range w.late {
		may(arrivesLate, i, true)
	}
	for i := range w.gates {
		g := &w.gates[i]
		if g.gone {
			continue
		}
		may(begins, i, len(g.mail) > 0)
		may(drops, i, w.drops && len(g.mail) > 0)
		may(hesitates, i, w.drops && len(g.mail) > 0)
		may(publishes, i, g.open && !g.published)
		may(closes, i, g.open && (!g.trusts || len(w.gates) < w.terms))
		may(leaves, i, !g.open)
		may(leavesNothing, i, !g.open && can(spentLosses, w.losses))
		may(kills, i, g.trusts && can(spentKills, w.setting.kills))
		may(killsWithAnswers, i, g.trusts && can(spentKills, w.setting.kills))
		may(pauses, i, g.trusts && can(spentPauses, w.setting.pauses))
	}
	may(starts, 0, (!w.held || w.control == "start before the grant") && len(w.gates) < w.terms)
	next := w.nextWake()
	soon := next <= w.now+2*time.Second // no packet takes longer
	may(passes, 0, next > w.now && can(spentTimes, w.times) && (!busy || soon && can(spentSlow, w.slow)))
	return list
}

// Describe implements explore.World.
func (w *small) Describe(a smallMove) string {
	text := fmt.Sprintf("%8v  %v %d", w.now, a.does, a.i)
	switch a.does {
	case toGate:
		p := w.proxies[a.i].toGate[0]
		return fmt.Sprintf("%s: %+v %+v", text, p.m, p.probe)
	case fromGate:
		return fmt.Sprintf("%s: %+v", text, w.proxies[a.i].fromGate[0].here)
	case arrivesLate:
		return fmt.Sprintf("%s: %+v", text, w.late[a.i])
	}
	return text
}

func (w *small) violated(format string, args ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, args...)
	}
}

// Try implements explore.World.
func (w *small) Try(a smallMove) error {
	w.try(a)
	return w.violation
}

func (w *small) try(a smallMove) {
	switch a.does {
	case toGate, fromGate, reads, looks, failsToLook, ticks, breaks, breaksBoth, adds:
		w.proxyMoves(a.does, a.i)
	case arrivesLate:
		p := w.late[a.i]
		w.late = slices.Delete(w.late, a.i, a.i+1)
		w.arrive(p)
	case starts:
		if n := len(w.gates); n > 0 && !w.gates[n-1].gone && w.gates[n-1].trusts {
			w.violated("an instance starts alongside another one")
		}
		id := fmt.Sprint("gate", len(w.gates))
		w.gates = append(w.gates, smallGate{worldGate: worldGate{ledger: Ledger[int]{Gate: id}, open: true}, trusts: true})
		w.held = true
	case passes:
		for i := range w.proxies {
			if p := &w.proxies[i]; len(p.toGate)+len(p.fromGate) > 0 || p.looks {
				w.spent[spentSlow]++
				break
			}
		}
		w.spent[spentTimes]++
		w.now = w.nextWake()
	default:
		w.gateMoves(a.does, a.i)
	}
}

func (w *small) proxyMoves(does doing, i int) {
	p := &w.proxies[i]
	switch does {
	case adds:
		p.sent++
		w.do(i, p.outbox.Add(w.now, p.sent, cmp.Or(w.size, 10)))
	case toGate:
		m := p.toGate[0]
		p.toGate = p.toGate[1:]
		w.arrive(m)
	case fromGate:
		m := p.fromGate[0]
		p.fromGate = p.fromGate[1:]
		if m.hint {
			w.do(i, p.outbox.Suspect(w.now))
		} else {
			w.do(i, p.outbox.HandleState(w.now, *m.here))
		}
	case reads:
		read := w.redis
		p.look = &read
	case looks, failsToLook:
		look := p.look
		p.look, p.looks = nil, false
		if does == failsToLook {
			w.spent[spentLosses]++
			look = nil
		}
		w.do(i, p.outbox.HandleLookup(w.now, look))
	case ticks:
		w.do(i, p.outbox.Tick(w.now))
	case breaks, breaksBoth:
		w.spent[spentLosses]++
		w.late = append(w.late, p.toGate...)
		if p.toGate = nil; does == breaksBoth {
			p.fromGate = nil
		}
	}
}

func (w *small) gateMoves(does doing, i int) {
	g := &w.gates[i]
	last := i == len(w.gates)-1
	switch does {
	case drops:
		g.mail = g.mail[1:]
	case begins, hesitates:
		m := g.mail[0]
		g.mail = g.mail[1:]
		p := &w.proxies[m.proxy]
		may := g.open && (g.trusts || w.control == "no guard") && does != hesitates
		here, ok := g.ledger.Begin(w.now, p.outbox.Proxy, m.m.Number, may)
		if w.control == "messages are not counted" && may {
			ok, here.Proxy, here.Gate = true, p.outbox.Proxy, g.ledger.Gate
		}
		if !ok {
			return
		}
		if !last {
			w.violated("an instance begins a message after another one has started")
		}
		if !g.trusts {
			w.violated("an instance begins a message after the end of its lease")
		}
		if n := len(p.begun); n > 0 && p.begun[n-1] >= m.m.Message {
			w.violated("of proxy %d, %d is begun after %d", m.proxy, m.m.Message, p.begun[n-1])
		}
		p.begun = append(p.begun, m.m.Message)
		p.fromGate = append(p.fromGate, packet{here: &here})
	case publishes:
		g.published = true
		if last {
			w.redis.At = Place{Address: "a", Gate: g.ledger.Gate}
		}
	case closes:
		g.open = false
		if last && w.control == "release before the stop" {
			w.held = false
		}
	case leaves, leavesNothing:
		g.gone = true
		if does == leaves && w.control != "numbers are not left" {
			w.redis.Left = maps.Clone(w.redis.Left)
			w.redis.Left[g.ledger.Gate] = g.ledger.Begun()
		}
		if does == leavesNothing {
			w.spent[spentLosses]++
			w.numbersLost = true
		}
		for _, p := range g.ledger.Waiting() {
			w.proxies[p].fromGate = append(w.proxies[p].fromGate, packet{hint: true})
		}
		w.held = w.held && !last
	case kills, killsWithAnswers:
		for k := range w.proxies {
			if does == killsWithAnswers {
				w.proxies[k].fromGate = nil
			}
		}
		w.spent[spentKills]++
		g.open, g.gone, g.trusts = false, true, false
		w.held = w.held && !last
	case pauses:
		w.spent[spentPauses]++
		g.trusts = false
		w.held = w.held && !last
	}
}

func (w *small) do(i int, do Actions[int]) {
	p := &w.proxies[i]
	for _, m := range do.Refused {
		if slices.Contains(p.refused, m) {
			w.violated("proxy %d refuses %d twice", i, m)
		}
	}
	p.refused = append(p.refused, do.Refused...)
	if len(p.refused) > 0 && w.wait == time.Hour && w.spent[spentKills]+w.spent[spentPauses] == 0 && !w.numbersLost {
		w.violated("proxy %d refuses %v", i, p.refused)
	}
	if len(do.Sent) > Window {
		w.violated("%d are sent at once", len(do.Sent))
	}
	for _, m := range do.Sent {
		p.toGate = append(p.toGate, packet{to: p.outbox.Place(), proxy: i, m: m})
	}
	if do.Probe != nil {
		p.toGate = append(p.toGate, packet{to: p.outbox.Place(), proxy: i, probe: do.Probe})
	}
	p.looks = p.looks || do.Look
}

// arrive brings a packet to a gate.
func (w *small) arrive(m packet) {
	k := slices.IndexFunc(w.gates, func(g smallGate) bool { return g.ledger.Gate == m.to.Gate })
	g, p := &w.gates[k], &w.proxies[m.proxy]
	switch {
	case g.gone:
	case !g.open || !g.trusts:
		p.fromGate = append(p.fromGate, packet{hint: true})
	case m.probe != nil:
		here := g.ledger.Probe(w.now, p.outbox.Proxy, m.proxy, *m.probe)
		p.fromGate = append(p.fromGate, packet{here: &here})
	case g.ledger.Receive(w.now, p.outbox.Proxy, m.m.Number), w.control == "messages are not counted":
		g.mail = append(g.mail, m)
	}
}

// Settle implements explore.World: without further faults, each message is begun or refused.
func (w *small) Settle() error {
	w.late = nil
	for range 5000 {
		if n := len(w.gates); !w.held && (n == 0 || w.gates[n-1].gone || !w.gates[n-1].trusts) {
			w.try(smallMove{does: starts})
		}
		moves := slices.DeleteFunc(w.Moves(nil), func(a smallMove) bool {
			switch a.does {
			case adds, failsToLook, breaks, breaksBoth, leavesNothing, kills, killsWithAnswers, pauses, starts, passes:
				return true
			case closes:
				return w.gates[a.i].trusts
			}
			return false
		})
		switch {
		case len(moves) > 0:
			w.try(moves[0])
		case w.nextWake() > 0:
			w.now = w.nextWake()
		default:
			for i, p := range w.proxies {
				for m := 1; m <= p.sent; m++ {
					if !slices.Contains(p.begun, m) && !slices.Contains(p.refused, m) {
						w.violated("the message %d of proxy %d is lost", m, i)
					}
				}
			}
			return w.violation
		}
		if w.violation != nil {
			return w.violation
		}
	}
	return errors.New("the proxies do not come to rest")
}
