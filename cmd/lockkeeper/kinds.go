//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

const (
	defaultKind = "plain"
	// expirableKind is the only kind that is not a lock: the command runs with a permit.
	expirableKind = inspect.KindExpirableSemaphore
)

// kindNames returns the values of -kind.
func kindNames() []string { return append(slices.Sorted(maps.Keys(kinds.Forms)), expirableKind) }

func parseKind(to *string) func(string) error {
	return func(kind string) error {
		if !slices.Contains(kindNames(), kind) {
			return fmt.Errorf("the kinds are %s", strings.Join(kindNames(), ", "))
		}
		*to = kind
		return nil
	}
}

// lockOf returns the lock that was named, or the MultiLock of several.
func (o *options) lockOf(locks *lockkeeper.System) *lockkeeper.Lock {
	var all []*lockkeeper.Lock
	for _, name := range o.locks {
		all = append(all, locks.LockOf(kinds.Forms[o.kind].Of(name)))
	}
	if len(all) == 1 {
		return all[0]
	}
	return lockkeeper.MultiLock(all...)
}

// taking is a function that acquires the lock, or all of several, or a permit.
type taking func(context.Context, []lockkeeper.Option) (holding, error)

// acquirer returns take, which acquires the lock or the permit that the command line names, and showProgress, which
// shows on a terminal meanwhile which process holds it.
func (r *runner) acquirer(locks *lockkeeper.System) (take taking, showProgress func() (end func())) {
	if r.kind == expirableKind {
		return r.takePermit(locks), func() func() { return func() {} }
	}
	lock := r.lockOf(locks)
	r.name = lock.Name()
	r.what = fmt.Sprintf("the lock %q", r.name)
	return func(ctx context.Context, options []lockkeeper.Option) (holding, error) {
		hold, err := lock.Acquire(ctx, options...)
		return hold, withHolder(lock, err)
	}, func() func() { return r.showProgress(lock) }
}

// takePermit returns a function that acquires a permit, and sets the number of permits unless it is set.
func (r *runner) takePermit(locks *lockkeeper.System) taking {
	r.name = r.locks[0]
	r.what = fmt.Sprintf("a permit of %q", r.name)
	permits := locks.ExpirableSemaphore(r.name).WithTotal(r.permits)
	return func(ctx context.Context, options []lockkeeper.Option) (holding, error) {
		if _, err := permits.TrySetPermits(ctx, r.permits); err != nil {
			return nil, err
		}
		return permits.Acquire(ctx, options...)
	}
}

// The command's environment has the fencing tokens: LOCK_TOKEN of a single lock, and
// LOCK_TOKENS of all locks in the order of -lock.
const (
	tokenEnv  = "LOCK_TOKEN"
	tokensEnv = "LOCK_TOKENS"
)

// withTokens adds the tokens to an environment. It removes the tokens of an outer lockkeeper, since they belong to
// other locks.
func (o *options) withTokens(env []string, holding holding) []string {
	hold, isHold := holding.(*lockkeeper.Hold)
	if !isHold || !kinds.Of(kinds.Forms[o.kind].Kind).Fenced {
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
