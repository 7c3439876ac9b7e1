package model

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Count is an operation on a number of permits, or on a latch, with its outcome.
type Count struct {
	Op CountOp
	// N is the number of permits or count-downs.
	N int
	// ID is the id of a count-down; 0 if it has none, and at most 63.
	ID int
	// Refused: a Close or a Pass found the latch closed.
	Refused bool
	// Most is the upper bound of what a Free finds, and N the lower bound.
	Most    int
	Unknown bool
}

// CountOp is the type of a Count.
type CountOp uint8

// The operations.
const (
	// Take acquires permits, and Give releases them.
	Take CountOp = iota
	Give
	// Add adds N permits, which may be negative, and Resize sets the number of all permits, free and taken. Settle: all
	// clients know the number, and no longer hand off surplus permits.
	Add
	Resize
	Settle
	// Forget: the number is unknown until the next Resize.
	Forget
	// Free reads how many permits are free, and All how many there are.
	Free
	All
	// Close closes a latch unless it is closed, Down counts it down, Pass waits until it is open,
	// and Missing reads how many count-downs are missing.
	Close
	Down
	Pass
	Missing
)

func (in Count) String() string {
	text := fmt.Sprintf("%s %d", [...]string{
		"take", "give", "add", "resize to", "settle", "forget", "free:", "all:", "close with", "count down", "pass", "missing:",
	}[in.Op], in.N)
	if in.ID != 0 {
		text += fmt.Sprintf(" by %d", in.ID)
	}
	if in.Refused {
		text += " (refused)"
	}
	if in.Unknown {
		text += " (unknown)"
	}
	return text
}

// Uncertain implements Operation.
func (in Count) Uncertain() bool { return in.Unknown }

// Doubted implements Operation.
func (in Count) AsUnknown() Operation {
	in.Unknown = true
	return in
}

// number is the state: how many permits or count-downs there are.
type number struct {
	all, taken int
	// most may be taken: as many as there are, or were before the last Settle.
	most      int
	forgotten bool
	ids       uint64 // that have counted down, one bit each
}

// anyNumber is how many permits may be taken while their number is unknown.
const anyNumber = 1 << 30

// counted returns the state after an operation; ok is false if the operation is not possible.
func counted(s number, in Count) (next number, ok bool) {
	ok = true
	switch in.Op {
	case Take:
		s.taken += in.N
		ok = s.taken <= s.most
	case Give:
		s.taken -= in.N
	case Add:
		s.all += in.N
		s.most = max(s.most, s.all)
	case Resize:
		s.all, s.forgotten = in.N, false
		s.most = max(s.most, s.all)
	case Settle:
		if !s.forgotten {
			s.most = s.all
		}
	case Forget:
		s.forgotten, s.most = true, anyNumber
	case Free:
		free := s.all - s.taken
		ok = s.forgotten || in.N <= free && free <= in.Most
	case All:
		ok = s.forgotten || s.all == in.N
	case Close:
		if ok = in.Refused == (s.all > 0); s.all == 0 {
			s.all, s.ids = in.N, 0
		}
	case Down:
		if bit := uint64(1) << in.ID; s.all > 0 && (in.ID == 0 || s.ids&bit == 0) {
			s.all--
			s.ids |= bit
		}
	case Pass:
		ok = in.Refused == (s.all > 0)
	case Missing:
		ok = s.all == in.N
	}
	return s, ok
}

// Counting models n permits, of which never more are taken than there are; or an open latch, with 0.
func Counting(n int) porcupine.Model {
	return checkable(number{all: n, most: n}, counted, func(a, b number) bool { return a == b })
}
