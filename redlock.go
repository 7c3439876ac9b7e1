package lockkeeper

import (
	"errors"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// RedLock provides locks on a majority of independent Redis servers, which survive the loss of a server; see
// NewRedLock.
type RedLock struct{ home *System }

// NewRedLock returns a RedLock on independent Redis servers. It needs one System for each server, 3
// or 5 of them, with the same Config in all processes. The first System runs the lock actors, and
// its guardian takes the requests by message (KIND_RED). The error is ErrInvalid if the Systems
// cannot form a RedLock, for instance because two are on the same server.
//
// NewRedLock waits at most half a second for the servers to identify themselves. A server that does
// not answer (see ConnectLater for one that is down) is identified when it first votes: if two
// turn out to be the same, requests fail with ErrRejected.
//
// A RedLock keeps working while a minority of its servers is down. A server that was recently
// started, flushed or promoted may have forgotten locks: it has no vote until the process has
// watched it for the length of Config.Watchdog. So no lock is granted just after all servers have
// started or when they are first used. docs/kinds.md and docs/guarantees.md describe the use of a
// RedLock and its limits.
func NewRedLock(systems ...*System) (*RedLock, error) {
	var runtimes []*actors.Runtime
	for _, s := range systems {
		if s.inner() == nil {
			return nil, fmt.Errorf("lockkeeper: RedLock: %w: a system is nil", ErrInvalid)
		}
		runtimes = append(runtimes, s.runtime)
	}
	if err := actors.FormRedLock(runtimes); err != nil {
		return nil, fmt.Errorf("lockkeeper: RedLock: %w: %w", ErrInvalid, err)
	}
	return &RedLock{home: systems[0]}, nil
}

// Lock returns the lock of that name on a majority of the servers.
func (r *RedLock) Lock(name string) *Lock {
	if r == nil {
		return &Lock{invalid: errors.New("the RedLock is nil")}
	}
	return &Lock{runtime: r.home.inner(), kind: messages.Kind_KIND_RED, name: name}
}
