package singleton

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// digest encodes a state. Times count from now.
type digest struct {
	buf []byte
	now time.Duration
}

func (d *digest) numbers(all ...int) {
	for _, n := range all {
		d.buf = binary.AppendVarint(d.buf, int64(n))
	}
}

func (d *digest) flags(all ...bool) {
	for _, is := range all {
		d.buf = append(d.buf, map[bool]byte{true: 1}[is])
	}
}

func (d *digest) text(s string) { d.buf = append(append(d.buf, s...), 0) }

func (d *digest) times(all ...time.Duration) {
	for _, at := range all {
		d.numbers(int((d.now - at) / time.Millisecond))
	}
}

func (d *digest) packets(all []packet) {
	d.numbers(len(all))
	for _, p := range all {
		d.text(p.to.Gate)
		d.numbers(p.proxy, p.m.Message, int(p.m.Number))
		d.flags(p.hint, p.probe != nil, p.here != nil)
		if p.probe != nil {
			d.numbers(int(p.probe.Number), int(p.probe.Next))
			d.flags(p.probe.Known)
		}
		if p.here != nil {
			d.text(p.here.Gate)
			d.numbers(int(p.here.Probe), int(p.here.Received), int(p.here.Begun))
			d.flags(p.here.Forgotten)
		}
	}
}

func (d *digest) whereabouts(w *Whereabouts) {
	d.text(w.At.Gate)
	for _, gate := range slices.Sorted(maps.Keys(w.Left)) {
		d.text(gate)
		for _, proxy := range slices.Sorted(maps.Keys(w.Left[gate])) {
			d.text(proxy)
			d.numbers(int(w.Left[gate][proxy]))
		}
	}
	d.text("")
}

// Hash implements explore.World.
func (w *small) Hash() uint64 {
	d := &digest{buf: make([]byte, 0, 512), now: w.now}
	for _, n := range w.spent {
		d.numbers(int(n))
	}
	d.flags(w.held)
	d.whereabouts(&w.redis)
	for i := range w.proxies {
		p := &w.proxies[i]
		o := &p.outbox
		d.numbers(p.sent, len(p.begun), len(p.refused))
		d.numbers(p.begun...)
		d.numbers(p.refused...)
		d.flags(p.looks, o.open, o.lookupPending, p.look != nil)
		d.numbers(int(o.first), o.sent, int(o.probes), int(o.probesAtClose), int(o.pause), len(o.queue))
		d.text(o.gate)
		d.text(o.place.Gate)
		d.times(o.lastAnswer, o.nextLookup)
		if p.look != nil {
			d.whereabouts(p.look)
		}
		for _, e := range o.queue {
			d.numbers(e.message, e.tries)
			d.times(e.since, e.lastTry)
		}
		d.packets(p.toGate)
		d.packets(p.fromGate)
	}
	for i := range w.gates {
		g := &w.gates[i]
		d.flags(g.open, g.trusts, g.published, g.gone)
		d.numbers(len(g.ledger.proxies))
		for _, p := range w.proxies {
			if a := g.ledger.proxies[p.outbox.Proxy]; a != nil {
				d.text(p.outbox.Proxy)
				d.numbers(a.contact, int(a.probe), int(a.next), int(a.received), int(a.begun))
			}
		}
		d.packets(g.mail)
	}
	d.packets(w.late)
	h := fnv.New64a()
	_, _ = h.Write(d.buf)
	return h.Sum64()
}
