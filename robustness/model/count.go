package model

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Count is what was done to a number of permits, or to a latch, with what came of it.
type Count struct {
	Op CountOp
	// N is how many permits or count-downs it is about.
	N int
	// ID is that of a count-down; 0 if it has none, and at most 63.
	ID int
	// Refused: a Close has found the latch closed, or a Pass.
	Refused bool
	// Most is how many a Free finds at most, and N at least.
	Most    int
	Unknown bool
}

// CountOp is what is done.
type CountOp uint8

// The operations.
const (
	// Take takes permits, and Give gives them back.
	Take CountOp = iota
	Give
	// Add makes more permits, or fewer if N is negative, and Resize makes it so many, free and taken.
	// Settle: everybody knows of what was done, and nobody passes permits on that are too many.
	Add
	Resize
	Settle
	// Forget: nobody knows how many there are, until the next Resize.
	Forget
	// Free looks how many permits are free, and All how many there are.
	Free
	All
	// Close closes a latch unless it is closed, Down counts it down, Pass waits until it is open,
	// and Missing looks how many count-downs are missing.
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
func (in Count) Doubted() Operation {
	in.Unknown = true
	return in
}

// number is how many permits or count-downs there are.
type number struct {
	all, taken int
	// most may be taken: as many as there are, or were until now.
	most      int
	forgotten bool
	ids       uint64 // who has counted down, one bit for each
}

// anyNumber is how many permits may be taken while nobody knows how many there are.
const anyNumber = 1 << 30

// counted gives the number after an operation; ok is false if that could not have happened.
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

// Counting models so many permits, of which nobody takes more than there are; or an open latch, with 0.
func Counting(n int) porcupine.Model {
	return checkable(number{all: n, most: n}, counted, func(a, b number) bool { return a == b })
}
