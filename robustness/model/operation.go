package model

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Operation is the input of a model.
type Operation interface {
	fmt.Stringer
	// Uncertain reports whether nobody knows if it has happened, and Doubted is it if nobody knows.
	Uncertain() bool
	Doubted() Operation
}

// checkable gives a model to the checker. step gives the state after an operation; ok is false if
// that could not have happened.
func checkable[S any, I Operation](first S, step func(s S, in I) (next S, ok bool), equal func(a, b S) bool) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(from, input, _ any) (next []any) {
			s, in := from.(S), input.(I)
			if after, ok := step(s, in); ok {
				next = append(next, after)
			}
			if in.Uncertain() {
				next = append(next, s)
			}
			return next
		},
		Equal:             func(a, b any) bool { return equal(a.(S), b.(S)) },
		DescribeOperation: func(input, _ any) string { return input.(I).String() },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
	return nondeterministic.ToModel()
}
