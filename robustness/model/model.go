// Package model says what a lock is, for a checker of linearizability. The models
// differ in whether a lock can be re-entered, has tokens, or has readers.
package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Op is what was done to a lock.
type Op uint8

// The operations.
const (
	// Acquire takes the lock, or takes it once more.
	Acquire Op = iota
	// Release gives it back once.
	Release
	// Lose ends all that an owner holds: it was lost, or its owner has died.
	Lose
	// Wipe has the tokens begin anew: somebody has emptied Redis.
	Wipe
)

// Input is an operation, with what came of it. Unknown outcomes are possible: the
// operation may have happened, or not.
type Input struct {
	Op     Op
	Owner  string
	Shared bool
	// Count is how often the owner has the lock after an Acquire, in that mode.
	Count int
	Token int64
	// Plain: it was taken without a token.
	Plain   bool
	Unknown bool
}

// Uncertain implements Operation.
func (in Input) Uncertain() bool { return in.Unknown }

// Doubted implements Operation.
func (in Input) Doubted() Operation {
	in.Unknown = true
	return in
}

func (in Input) String() string {
	text := [...]string{"acquire", "release", "lose", "wipe"}[in.Op]
	if in.Shared {
		text += " shared"
	}
	text += " " + in.Owner
	if in.Op == Acquire {
		text += fmt.Sprintf(" → %d", in.Count)
	}
	if in.Token != 0 {
		text += fmt.Sprintf(", token %d", in.Token)
	}
	if in.Unknown {
		text += " (unknown)"
	}
	return text
}

// Lock is a model.
type Lock struct {
	Name              string
	Reenters          bool // at most once otherwise
	HasTokens, Shares bool
}

// The models: a mutex with an owner, one that can be re-entered, both with fencing
// tokens, and permits, of which a reader takes one and a writer all.
var (
	Mutex           = Lock{Name: "mutex"}
	Reentrant       = Lock{Name: "re-entrant mutex", Reenters: true}
	Fenced          = Lock{Name: "fenced mutex", HasTokens: true}
	Mixed           = Lock{Name: "mutex, for some fenced", HasTokens: true}
	ReentrantFenced = Lock{Name: "re-entrant fenced mutex", Reenters: true, HasTokens: true}
	Permits         = Lock{Name: "permits", Reenters: true, Shares: true}
)

// state is who has the lock, and the highest token so far.
type state struct {
	holders []holder // in the order of their owners
	token   int64
}

type holder struct {
	owner             string
	exclusive, shared int
	token             int64
}

func (s state) with(h holder) state {
	i, found := slices.BinarySearchFunc(s.holders, h.owner, func(h holder, owner string) int { return strings.Compare(h.owner, owner) })
	s.holders = slices.Clone(s.holders)
	switch {
	case found && h.exclusive+h.shared == 0:
		s.holders = slices.Delete(s.holders, i, i+1)
	case found:
		s.holders[i] = h
	case h.exclusive+h.shared > 0:
		s.holders = slices.Insert(s.holders, i, h)
	}
	return s
}

// step gives the state after an operation; ok is false if that could not have happened.
func (l Lock) step(s state, in Input) (next state, ok bool) {
	var own holder
	others, writers := 0, 0
	for _, h := range s.holders {
		if h.owner == in.Owner {
			own = h
			continue
		}
		others++
		writers += h.exclusive
	}
	held := own.exclusive + own.shared
	own.owner = in.Owner
	switch in.Op {
	case Wipe:
		s.token = 0
		return s, true
	case Lose:
		own.exclusive, own.shared = 0, 0
		return s.with(own), held > 0
	case Release:
		if in.Shared {
			own.shared--
		} else {
			own.exclusive--
		}
		return s.with(own), own.exclusive >= 0 && own.shared >= 0
	}
	switch {
	case in.Shared && (!l.Shares || writers > 0), !in.Shared && others > 0, held > 0 && !l.Reenters:
		return s, false
	case !in.Shared && held > 0 && own.exclusive == 0: // a reader that would write
		return s, false
	}
	if in.Shared {
		own.shared++
	} else {
		own.exclusive++
	}
	if count := own.exclusive + own.shared; !l.Shares && !in.Unknown && in.Count != count {
		return s, false
	}
	if l.HasTokens && !in.Unknown && !in.Plain {
		if held == 0 && in.Token <= s.token || held > 0 && in.Token != own.token {
			return s, false
		}
		own.token, s.token = in.Token, in.Token
	}
	return s.with(own), true
}

// Model gives the model to the checker.
func (l Lock) Model() porcupine.Model {
	return checkable(state{}, l.step, func(a, b state) bool { return a.token == b.token && slices.Equal(a.holders, b.holders) })
}
