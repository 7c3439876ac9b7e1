package singleton

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world has proxies, instances one after the other, Redis, and a network that loses, repeats and delays.
type world struct {
	*rand.Rand
	now     time.Duration
	proxies []*worldProxy
	gates   []*worldGate // the last is that of the present term
	redis   Whereabouts
	// late are packets of the past, which may arrive at any time.
	late []packet

	// What may happen. pauses: the lease seems to have ended, and a late reply to its renewal prolongs it. swallows: the
	// mailbox of the instance drops messages, unless it is the last.
	kills, losses, pauses, swallows bool
	broken                          []string
}

type worldProxy struct {
	outbox Outbox[int]
	sent   int
	// toGate and fromGate are on their way, in order.
	toGate, fromGate []packet
	look             *Whereabouts
	looks            bool
	begun, refused   []int
}

type worldGate struct {
	ledger Ledger[int]
	// mail is what the instance has received and not begun.
	mail []packet
	// open: it receives and begins. dead: it is gone.
	open, dead bool
}

// packet is a message, a probe or an answer.
type packet struct {
	to    Place
	proxy int
	m     Numbered[int]
	probe *Probe
	here  *GateState
	hint  bool
}

func (w *world) gate() *worldGate { return w.gates[len(w.gates)-1] }

func (w *world) violated(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// term begins a term.
func (w *world) term() {
	id := fmt.Sprintf("gate%d", len(w.gates))
	w.gates = append(w.gates, &worldGate{ledger: Ledger[int]{Gate: id}, open: true})
	w.redis.At = Place{Address: "a", Gate: id}
}

// stop ends a term in good order.
func (w *world) stop() {
	g := w.gate()
	g.open = false
	w.redis.Left = maps.Clone(w.redis.Left)
	w.redis.Left[g.ledger.Gate] = g.ledger.Begun()
	for _, p := range g.ledger.Waiting() {
		w.proxies[p].fromGate = append(w.proxies[p].fromGate, packet{hint: true})
	}
	w.term()
}

// kill ends a term without a word. The process may live, and be cut off: what is on its way may still arrive.
func (w *world) kill() {
	w.gate().open, w.gate().dead = false, true
	w.term()
}

func (w *world) do(p int, do Actions[int]) {
	proxy := w.proxies[p]
	proxy.refused = append(proxy.refused, do.Refused...)
	if len(do.Sent) > Window {
		w.violated("%d are sent at once", len(do.Sent))
	}
	for _, m := range do.Sent {
		proxy.toGate = append(proxy.toGate, packet{to: proxy.outbox.Place(), proxy: p, m: m})
	}
	if do.Probe != nil {
		proxy.toGate = append(proxy.toGate, packet{to: proxy.outbox.Place(), proxy: p, probe: do.Probe})
	}
	if do.Look {
		proxy.looks = true
		if read := w.redis; w.IntN(8) > 0 {
			proxy.look = &read
		}
	}
}

// arrive brings a packet to a gate.
func (w *world) arrive(p packet) {
	i := slices.IndexFunc(w.gates, func(g *worldGate) bool { return g.ledger.Gate == p.to.Gate })
	if i < 0 {
		return
	}
	g, proxy := w.gates[i], w.proxies[p.proxy]
	id := proxy.outbox.Proxy
	switch {
	case g.dead:
	case !g.open:
		proxy.fromGate = append(proxy.fromGate, packet{hint: true})
	case p.probe != nil:
		here := g.ledger.Probe(w.now, id, p.proxy, *p.probe)
		proxy.fromGate = append(proxy.fromGate, packet{here: &here})
	case g.ledger.Receive(w.now, id, p.m.Number):
		g.mail = append(g.mail, p)
	}
}

// begin lets the instance begin a message.
func (w *world) begin() {
	g := w.gate()
	if len(g.mail) == 0 {
		return
	}
	m := g.mail[0]
	g.mail = g.mail[1:]
	proxy := w.proxies[m.proxy]
	if w.swallows && w.IntN(50) == 0 {
		return
	}
	here, ok := g.ledger.Begin(w.now, proxy.outbox.Proxy, m.m.Number, !w.pauses || w.IntN(50) > 0)
	if !ok {
		return
	}
	if n := len(proxy.begun); n > 0 && proxy.begun[n-1] >= m.m.Message {
		w.violated("of proxy %d, %d is begun after %d", m.proxy, m.m.Message, proxy.begun[n-1])
	}
	proxy.begun = append(proxy.begun, m.m.Message)
	proxy.fromGate = append(proxy.fromGate, packet{here: &here})
}

// hear brings a packet to a proxy.
func (w *world) hear(p int, m packet) {
	if m.hint {
		w.do(p, w.proxies[p].outbox.Suspect(w.now))
		return
	}
	w.do(p, w.proxies[p].outbox.HandleState(w.now, *m.here))
}

// deliver delivers the next packet of a proxy in both directions.
func (w *world) deliver(p int) {
	proxy := w.proxies[p]
	if len(proxy.toGate) > 0 {
		m := proxy.toGate[0]
		proxy.toGate = proxy.toGate[1:]
		w.arrive(m)
	}
	if len(proxy.fromGate) > 0 {
		m := proxy.fromGate[0]
		proxy.fromGate = proxy.fromGate[1:]
		w.hear(p, m)
	}
	if proxy.looks && w.IntN(2) == 0 {
		look := proxy.look
		proxy.look, proxy.looks = nil, false
		w.do(p, proxy.outbox.HandleLookup(w.now, look))
	}
}

// pass lets time pass, up to the next tick of a proxy at most.
func (w *world) pass(most time.Duration) {
	to := w.now + time.Duration(w.Int64N(int64(most)))
	for p, proxy := range w.proxies {
		if at, due := proxy.outbox.NextWake(); due && at <= to {
			w.now = max(w.now, at)
			w.do(p, proxy.outbox.Tick(w.now))
			return
		}
	}
	w.now = to
}

func (w *world) step() {
	p := w.IntN(len(w.proxies))
	proxy := w.proxies[p]
	switch n := w.IntN(100); {
	case n < 20:
		proxy.sent++
		w.do(p, proxy.outbox.Add(w.now, proxy.sent, w.IntN(100_000)))
	case n < 60:
		w.deliver(p)
	case n < 78:
		w.begin()
	case n < 92:
		w.pass(300 * time.Millisecond)
	case n < 94:
		w.stop()
	case n < 95 && w.kills:
		w.kill()
	case n < 97 && w.losses: // a connection breaks
		w.late = append(w.late, proxy.toGate...)
		proxy.toGate = nil
		if w.IntN(2) == 0 {
			proxy.fromGate = nil
		}
	case n < 99 && w.losses && len(w.late) > 0:
		w.arrive(w.late[w.IntN(len(w.late))])
	}
}

// settle ends all faults, and lets all outboxes become empty.
func (w *world) settle() bool {
	for range 100_000 {
		empty := true
		for p, proxy := range w.proxies {
			w.deliver(p)
			_, due := proxy.outbox.NextWake()
			empty = empty && !due && len(proxy.toGate) == 0
		}
		w.begin()
		if empty && len(w.gate().mail) == 0 {
			return true
		}
		w.pass(50 * time.Millisecond)
	}
	return false
}

// In random worlds each message is begun once, or refused; each proxy's are begun in order. Without kills, and if there
// is no hurry, none is refused.
func TestWorlds(t *testing.T) {
	t.Parallel()
	begun, refused := 0, 0
	for seed := range uint64(1600) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), redis: Whereabouts{Left: map[string]map[string]uint64{}}, kills: seed%2 == 0, losses: seed%4 < 2, pauses: seed%8 < 5, swallows: seed%16 < 7}
		hurry := seed%3 == 0
		limits := Limits{Buffer: 1000, Wait: time.Hour, Poll: time.Second}
		if hurry {
			limits.Wait, limits.Buffer = time.Second, 30
		}
		for i := range 2 {
			w.proxies = append(w.proxies, &worldProxy{outbox: Outbox[int]{Proxy: fmt.Sprint("proxy", i), Limits: limits}})
		}
		w.term()
		for range 600 {
			w.step()
		}
		w.swallows = false
		w.stop() // whose instance may have swallowed the last message
		if !w.settle() {
			w.violated("not all messages are settled")
		}
		for i, p := range w.proxies {
			begun, refused = begun+len(p.begun), refused+len(p.refused)
			if !w.kills && !hurry && len(p.refused) > 0 {
				w.violated("proxy %d has refused %v", i, p.refused)
			}
			for m := 1; m <= p.sent; m++ {
				if !slices.Contains(p.begun, m) && !slices.Contains(p.refused, m) {
					w.violated("the message %d of proxy %d is lost", m, i)
				}
			}
			slices.Sort(p.refused)
			if len(slices.Compact(p.refused)) != len(p.refused) {
				w.violated("proxy %d has refused a message twice", i)
			}
		}
		if len(w.broken) > 0 {
			t.Fatalf("seed %d: %v", seed, w.broken)
		}
	}
	if begun < refused || refused == 0 {
		t.Errorf("%d messages were begun and %d refused: the worlds test too little", begun, refused)
	}
	t.Logf("%d messages were begun, %d refused", begun, refused)
}
