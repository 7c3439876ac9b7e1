//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper"
)

const (
	defaultKind = "reentrant"
	fencedKind  = "fenced"
)

// kinds are what -kind may say.
var kinds = map[string]func(locks *lockkeeper.System, name string) *lockkeeper.Lock{
	defaultKind: (*lockkeeper.System).Lock,
	fencedKind:  (*lockkeeper.System).FencedLock,
	"fair":      (*lockkeeper.System).FairLock,
	"read":      func(s *lockkeeper.System, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() },
	"write":     func(s *lockkeeper.System, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
}

func parseKind(to *string) func(string) error {
	return func(kind string) error {
		if kinds[kind] == nil {
			return fmt.Errorf("the kinds are %s", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		}
		*to = kind
		return nil
	}
}

// lockOf is the one lock that was named, or the MultiLock of all.
func (o *options) lockOf(locks *lockkeeper.System) *lockkeeper.Lock {
	var all []*lockkeeper.Lock
	for _, name := range o.locks {
		all = append(all, kinds[o.kind](locks, name))
	}
	if len(all) == 1 {
		return all[0]
	}
	return lockkeeper.MultiLock(all...)
}

// The command's environment has the fencing tokens: that of the one lock, and those of
// all in the order of -lock.
const (
	tokenEnv  = "LOCK_TOKEN"
	tokensEnv = "LOCK_TOKENS"
)

// withTokens adds the tokens to an environment. Those that a lockkeeper around this one has
// left there go, since they are of other locks.
func (o *options) withTokens(env []string, hold *lockkeeper.Hold) []string {
	if o.kind != fencedKind {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		return strings.HasPrefix(variable, tokenEnv+"=") || strings.HasPrefix(variable, tokensEnv+"=")
	})
	if len(o.locks) == 1 {
		token := strconv.FormatInt(hold.Token(), 10)
		return append(env, tokenEnv+"="+token, tokensEnv+"="+token)
	}
	var tokens []string
	for _, token := range hold.MemberTokens() {
		tokens = append(tokens, strconv.FormatInt(token, 10))
	}
	return append(env, tokensEnv+"="+strings.Join(tokens, " "))
}
