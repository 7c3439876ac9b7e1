package redismodel

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Encoder encodes a state so that two states that differ only in the time on the clock, or in the numbers of
// the terms, have the same encoding.
type Encoder struct {
	// Placed returns what the number of the command in an entry means to the entry's client.
	Placed func(c Client, seq uint64) int64

	buf    []byte
	now    machine.Instant
	client Client
	terms  [][]uint64 // of each client, in the order in which they were met
}

// Begin starts a new encoding.
func (e *Encoder) Begin(now machine.Instant) {
	e.buf, e.now = e.buf[:0], now
	for i := range e.terms {
		e.terms[i] = e.terms[i][:0]
	}
}

// Sum returns a hash of the encoding. It is the same in every process, so that a limited exploration is
// repeatable.
func (e *Encoder) Sum() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(e.buf)
	return h.Sum64()
}

// Number writes a number.
func (e *Encoder) Number(n int64) { e.buf = binary.AppendVarint(e.buf, n) }

// Bool writes a boolean.
func (e *Encoder) Bool(b bool) {
	if b {
		e.buf = append(e.buf, 1)
	} else {
		e.buf = append(e.buf, 0)
	}
}

// Instant writes the time left until t, in milliseconds, at least 0. A t of 0 means never.
func (e *Encoder) Instant(t machine.Instant) {
	if t == 0 {
		e.Number(-2)
		return
	}
	e.Number(max(int64((t-e.now+time.Millisecond-1)/time.Millisecond), 0))
}

// Age writes the time since t, in milliseconds.
func (e *Encoder) Age(t machine.Instant) { e.Number(int64((e.now - t) / time.Millisecond)) }

// For sets the client of the terms that follow.
func (e *Encoder) For(c Client) {
	for len(e.terms) <= int(c) {
		e.terms = append(e.terms, nil)
	}
	e.client = c
}

// Term writes a term as Named returns it.
func (e *Encoder) Term(term uint64) { e.Number(e.Named(term)) }

// Named returns a term as the order in which it first occurred; 0 for none.
func (e *Encoder) Named(term uint64) int64 {
	if term == 0 {
		return 0
	}
	known := e.terms[e.client]
	i := slices.Index(known, term)
	if i < 0 {
		i = len(known)
		e.terms[e.client] = append(known, term)
	}
	return int64(i + 1)
}

// Owner writes an owner.
func (e *Encoder) Owner(o Owner) {
	e.For(max(o.Client, 0))
	e.Number(int64(o.Client))
	e.Term(o.Term)
	e.Bool(o.Kept)
}

// Encode writes everything that can affect later replies of the server. Tokens are left out: only their
// differences matter, and the processes encode those.
func (s *Server) Encode(e *Encoder) {
	for i := range s.Parts() {
		l := &s.parts[i]
		e.Number(int64(len(l.Holders)))
		for _, h := range l.Holders {
			e.Owner(h.Owner)
			e.Number(int64(h.Exclusive))
			e.Number(int64(h.Shared))
		}
		if !l.Free() {
			e.Instant(l.ExpiresAt)
		}
		e.Number(int64(len(l.ReadLeases)))
		for _, r := range l.ReadLeases {
			e.Owner(r.Owner)
			e.Number(int64(r.N))
			e.Instant(r.Until)
		}
		e.waitQueue(l)
		e.Number(int64(len(l.Queue)))
		for _, w := range l.Queue {
			e.Owner(w.Owner)
			e.Instant(e.now + max(w.Timeout-s.Clock(), 0))
		}
	}
	e.Number(int64(len(s.subscriptions)))
	for _, sub := range s.subscriptions {
		e.Number(int64(sub.client))
		e.Owner(sub.channel)
	}
}
