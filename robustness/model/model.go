// Package model specifies locks for a checker of linearizability. The models differ in
// whether a lock can be re-entered, has fencing tokens, or has readers.
package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Op is the type of an operation on a lock.
type Op uint8

// The operations.
const (
	// Acquire takes the lock, or re-enters it.
	Acquire Op = iota
	// Release releases one hold.
	Release
	// Lose ends all holds of an owner: they were lost, or the owner died.
	Lose
	// ResetTokens starts the tokens again: Redis was emptied.
	ResetTokens
)

// Input is an operation with its outcome. If the outcome is Unknown, the operation may
// have happened or not.
type Input struct {
	Op     Op
	Owner  string
	Shared bool
	// Count is the owner's hold count after an Acquire, in that mode.
	Count int
	Token int64
	// Plain: the lock was acquired without a token.
	Plain   bool
	Unknown bool
}

// Uncertain implements Operation.
func (in Input) Uncertain() bool { return in.Unknown }

// AsUnknown implements Operation.
func (in Input) AsUnknown() Operation {
	in.Unknown = true
	return in
}

func (in Input) String() string {
	text := [...]string{"acquire", "release", "lose", "reset tokens"}[in.Op]
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

// Lock is a model of a lock.
type Lock struct {
	Name              string
	Reenters          bool // otherwise an owner holds it at most once
	HasTokens, Shares bool
}

// The models: a mutex with an owner, one that can be re-entered, both with fencing
// tokens, and a read/write lock.
var (
	Mutex           = Lock{Name: "mutex"}
	Reentrant       = Lock{Name: "re-entrant mutex", Reenters: true}
	Fenced          = Lock{Name: "fenced mutex", HasTokens: true}
	Mixed           = Lock{Name: "mutex, partly fenced", HasTokens: true}
	ReentrantFenced = Lock{Name: "re-entrant fenced mutex", Reenters: true, HasTokens: true}
	ReadWrite       = Lock{Name: "read/write lock", Reenters: true, Shares: true}
)

// state is the holders, and the highest token so far.
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

// step returns the state after an operation; ok is false if the operation is not possible.
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
	case ResetTokens:
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
	case !in.Shared && held > 0 && own.exclusive == 0: // a reader that wants to write
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

// Model is the model for the checker.
func (l Lock) Model() porcupine.Model {
	return checkable(state{}, l.step, func(a, b state) bool { return a.token == b.token && slices.Equal(a.holders, b.holders) })
}
