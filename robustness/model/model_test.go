package model

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// Each history is a list of operations, one after another.
func TestModels_AcceptOnlyPossibleHistories(t *testing.T) {
	take := func(owner string, count int) Input { return Input{Op: Acquire, Owner: owner, Count: count} }
	read := func(owner string) Input { return Input{Op: Acquire, Owner: owner, Shared: true, Count: 1} }
	give := func(owner string) Input { return Input{Op: Release, Owner: owner} }
	leave := func(owner string) Input { return Input{Op: Release, Owner: owner, Shared: true} }
	lose := func(owner string) Input { return Input{Op: Lose, Owner: owner} }
	token := func(in Input, n int64) Input { in.Token = n; return in }
	unknown := func(in Input) Input { in.Unknown = true; return in }
	for _, c := range []struct {
		name  string
		model Lock
		ops   []Input
		ok    bool
	}{
		{"one after another", Mutex, []Input{take("a", 1), give("a"), take("b", 1), give("b")}, true},
		{"two at the same time", Mutex, []Input{take("a", 1), take("b", 1)}, false},
		{"another's release", Mutex, []Input{take("a", 1), give("b")}, false},
		{"released twice", Mutex, []Input{take("a", 1), give("a"), give("a")}, false},
		{"re-entered", Mutex, []Input{take("a", 1), take("a", 2)}, false},
		{"lost", Mutex, []Input{take("a", 1), lose("a"), take("b", 1)}, true},
		{"an unknown acquire", Mutex, []Input{unknown(take("a", 0)), take("b", 1)}, true},
		{"re-entered and released", Reentrant, []Input{take("a", 1), take("a", 2), give("a"), give("a"), take("b", 1)}, true},
		{"released once of two", Reentrant, []Input{take("a", 1), take("a", 2), give("a"), take("b", 1)}, false},
		{"a wrong count", Reentrant, []Input{take("a", 1), take("a", 3)}, false},
		{"lost at all depths", Reentrant, []Input{take("a", 1), take("a", 2), lose("a"), take("b", 1)}, true},
		{"tokens grow", Fenced, []Input{token(take("a", 1), 3), give("a"), token(take("b", 1), 7)}, true},
		{"a token twice", Fenced, []Input{token(take("a", 1), 3), give("a"), token(take("b", 1), 3)}, false},
		{"tokens start again", Fenced, []Input{token(take("a", 1), 3), give("a"), {Op: ResetTokens}, token(take("b", 1), 1)}, true},
		{"plain among fenced", Mixed, []Input{token(take("a", 1), 3), give("a"), {Op: Acquire, Owner: "b", Count: 1, Plain: true}, give("b"), token(take("c", 1), 4)}, true},
		{"plain with fenced", Mixed, []Input{token(take("a", 1), 3), {Op: Acquire, Owner: "b", Count: 1, Plain: true}}, false},
		{
			"a token twice, with a plain hold between", Mixed,
			[]Input{
				token(take("a", 1), 3), give("a"), {Op: Acquire, Owner: "b", Count: 1, Plain: true}, give("b"),
				token(take("c", 1), 3),
			},
			false,
		},
		{"re-entered with its token", ReentrantFenced, []Input{token(take("a", 1), 3), token(take("a", 2), 3)}, true},
		{"re-entered with another token", ReentrantFenced, []Input{token(take("a", 1), 3), token(take("a", 2), 4)}, false},
		{"readers", ReadWrite, []Input{read("a"), read("b"), leave("a"), leave("b"), take("c", 1)}, true},
		{"a writer with a reader", ReadWrite, []Input{read("a"), take("b", 1)}, false},
		{"a reader with a writer", ReadWrite, []Input{take("b", 1), read("a")}, false},
		{"a writer that becomes a reader", ReadWrite, []Input{take("a", 1), read("a"), give("a"), read("b")}, true},
		{"a reader that becomes a writer", ReadWrite, []Input{read("a"), take("a", 1)}, false},
		{"readers of a mutex", Mutex, []Input{read("a")}, false},
	} {
		var ops []porcupine.Operation
		for i, in := range c.ops {
			ops = append(ops, porcupine.Operation{Input: in, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if ok := porcupine.CheckOperations(c.model.Model(), ops); ok != c.ok {
			t.Errorf("%s, a %s: linearizable is %v, want %v", c.name, c.model.Name, ok, c.ok)
		}
	}
}
