package core

import (
	"encoding/binary"
	"hash/maphash"
)

// encoder writes a state down so that two worlds that differ only in what can make no
// difference are the same: in the time on the clock, in the numbers of terms and of
// commands. (The jitter is drawn from the numbers of commands, so that worlds are
// merged which would wait for a little longer or shorter.)
type encoder struct {
	buf   []byte
	now   Instant
	seq   uint64
	terms [processes][]uint64
}

var hashSeed = maphash.MakeSeed()

func (w *world) hash(e *encoder) uint64 {
	e.buf, e.now = e.buf[:0], w.now
	for i := range e.terms {
		e.terms[i] = e.terms[i][:0]
	}
	e.field(w.held)
	if w.held.term != 0 {
		e.number(w.count)
		e.instant(w.expiresAt)
	}
	for _, n := range [...]int8{w.spent.faults, w.spent.cancels, w.spent.reentries, w.spent.forces, w.spent.flushes, w.spent.kills, w.spent.pauses} {
		e.number(int(n))
	}
	for i := range w.processes {
		e.process(int8(i), &w.processes[i])
	}
	e.number(len(w.late))
	for _, l := range w.late {
		e.command(l.process, l.command)
	}
	return maphash.Bytes(hashSeed, e.buf)
}

func (e *encoder) number(n int)      { e.buf = binary.AppendVarint(e.buf, int64(n)) }
func (e *encoder) bool(b bool)       { e.number(map[bool]int{true: 1}[b]) }
func (e *encoder) field(f fieldOf)   { e.number(int(f.process)); e.term(f.process, f.term) }
func (e *encoder) number64(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }

// instant is relative; 0 means none, and what is long over is just over.
func (e *encoder) instant(t Instant) {
	if t == 0 {
		e.number(-1 << 40)
		return
	}
	e.number(int(max(t-e.now, -1)))
}

// term is named by when it was first met.
func (e *encoder) term(p int8, term uint64) {
	if term == 0 {
		e.number(0)
		return
	}
	for i, known := range e.terms[p] {
		if known == term {
			e.number(i + 1)
			return
		}
	}
	e.terms[p] = append(e.terms[p], term)
	e.number(len(e.terms[p]))
}

func (e *encoder) command(p int8, c Command) {
	e.number(int(c.Kind))
	e.term(p, c.Term)
	e.number(c.Count)
	e.number(int(c.Lease))
	e.bool(c.Subscribed)
	e.bool(c.Open)
}

func (e *encoder) process(i int8, p *process) {
	e.bool(p.dead)
	e.number(len(p.out))
	for _, c := range p.out {
		e.number64(p.lock.seq - c.Seq)
		e.command(i, c)
	}
	if p.dead {
		return
	}
	for _, c := range p.clients {
		e.number(int(c.state))
		e.number(int(c.count))
		e.number(int(c.re))
	}
	e.number(len(p.in))
	for _, r := range p.in {
		e.number64(p.lock.seq - r.seq)
		e.number(int(r.Outcome))
		e.number(int(r.TTL))
		e.term(i, r.OwnTerm)
		e.bool(r.Taken)
		e.number(r.Others)
	}
	e.number(int(p.sub))
	e.number(int(p.notes))
	e.lock(i, &p.lock)
}

func (e *encoder) lock(i int8, l *Lock) {
	e.seq = l.seq
	e.number(int(l.phase))
	e.bool(l.spare != 0)
	e.bool(l.repeats)
	e.term(i, l.lease.term)
	e.number(int(l.lease.length))
	e.bool(l.lease.fixed)
	e.bool(l.lease.atRisk)
	e.number(l.lease.counts.exclusive)
	e.instant(l.lease.until)
	e.instant(l.lease.renewAt)
	e.instant(l.lease.tenureEnd)
	e.number(int(l.lease.doubt))
	e.ref(l.holds.first.ref)
	e.number(l.holds.first.exclusive)
	e.instant(l.holds.first.until)
	e.number(l.queue.len())
	for _, t := range l.queue.tickets {
		e.ref(t.Ref)
	}
	e.op(i, &l.main)
	e.op(i, &l.renewal)
	e.number(len(l.sides))
	for k := range l.sides {
		e.op(i, &l.sides[k])
	}
	e.number(len(l.changes))
	for _, c := range l.changes {
		e.bool(c.ticket != nil)
		e.ref(c.ref)
	}
	e.instant(l.wait.nextAt)
	e.bool(l.wait.again)
	e.bool(l.wait.refused)
	e.bool(l.wait.unsure)
	e.number(l.wait.turns)
	e.instant(l.wait.deferUntil)
	e.number(l.wait.tries)
	e.bool(l.wait.lastErr != "")
	e.number(int(l.sub.state))
}

func (e *encoder) ref(r any) {
	if who, ok := r.(ref); ok {
		e.number(int(who.what)<<4 + int(who.client) + 1)
		return
	}
	e.number(0)
}

func (e *encoder) op(i int8, o *op) {
	e.number(int(o.kind))
	if o.kind == opNone {
		return
	}
	e.term(i, o.term)
	e.number(o.counts.exclusive)
	e.number(int(o.lease))
	e.bool(o.fixed)
	if o.ticket != nil {
		e.ref(o.ticket.Ref)
	}
	e.ref(o.ref)
	e.number64(e.seq - o.seq)
	e.bool(o.inFlight)
	e.instant(o.sentAt)
	e.instant(o.due)
	e.bool(o.unsure)
	e.number(o.tries)
	e.instant(o.until)
}
