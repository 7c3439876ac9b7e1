package model

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Operation is the input of a model.
type Operation interface {
	fmt.Stringer
	// Uncertain reports whether the outcome is unknown.
	Uncertain() bool
	// AsUnknown returns the operation with an unknown outcome.
	AsUnknown() Operation
}

// checkable makes a model for the checker. step returns the state after an operation; ok is false if
// the operation is not possible in the state.
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
