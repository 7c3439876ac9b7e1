package lockkeeper

import (
	"errors"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// FencedLock names a reentrant lock whose holds carry a fencing token, Redisson's
// RFencedLock; see Hold.Token.
func (s *System) FencedLock(name string) *Lock {
	return &Lock{runtime: s.inner(), kind: messages.Kind_KIND_FENCED, name: name}
}

// FairLock names a lock that is granted in the order of the requests, over all
// processes: Redisson's fair lock. Every grant costs a round trip.
func (s *System) FairLock(name string) *Lock {
	return &Lock{runtime: s.inner(), kind: messages.Kind_KIND_FAIR, name: name}
}

// ReadWriteLock names a read/write lock.
func (s *System) ReadWriteLock(name string) *ReadWrite {
	return &ReadWrite{system: s, name: name}
}

// ReadWrite is a read/write lock, Redisson's RReadWriteLock: any number of readers
// hold it together, or one writer alone.
//
// A writer may read: Read().Acquire with the context of the write hold. When it then
// releases the write hold, it has become a reader. A reader cannot become a writer
// (ErrReentry), since two who tried would wait for each other.
type ReadWrite struct {
	system *System
	name   string
}

// Read is the lock for readers.
func (l *ReadWrite) Read() *Lock {
	lock := l.Write()
	lock.mode = messages.Mode_MODE_SHARED
	return lock
}

// Write is the lock for writers.
func (l *ReadWrite) Write() *Lock {
	if l == nil {
		return &Lock{wrong: errors.New("the read/write lock is nil")}
	}
	return &Lock{runtime: l.system.inner(), kind: messages.Kind_KIND_READ_WRITE, name: l.name}
}

// MultiLock is all of several locks or none, 1 to 64 of any kinds and on any systems.
// A lock that cannot be had keeps none of the others held meanwhile. When one of
// them is lost, all are.
//
// Release it before a System of its members is closed: a part on a System that is
// closed is left to expire, and the hold is lost.
//
// It is a holder of its own: a holder of one of the members does not re-enter that by
// taking the MultiLock, but waits for itself.
func MultiLock(locks ...*Lock) *Lock {
	var list []actors.Member
	for _, l := range locks {
		if err := l.unusable(); err != nil {
			return &Lock{wrong: err}
		}
		list = append(list, actors.Member{Runtime: l.runtime, Kind: l.kind, Mode: l.mode, Name: l.name})
	}
	members, err := actors.NewMembers(list)
	if err != nil {
		return &Lock{wrong: err}
	}
	return &Lock{runtime: members.Home(), kind: messages.Kind_KIND_MULTI, members: members}
}

// Red makes locks on a majority of independent Redis servers.
type Red struct{ home *System }

// RedLock makes locks on a majority of several independent Redis servers: one System
// for each, 3 or 5 of them, with the same Config in all processes. The first keeps the lock
// actors, and its guardian takes the requests by message (KIND_RED). ErrInvalid is returned
// if the systems cannot be the servers of a RedLock, as when two of them are on the same server.
//
// The servers are asked who they are, for half a second at most. Those that do not answer
// then (see ConnectLater for one that is down) are known when they vote: if two turn out to be the
// same, requests fail with ErrRejected.
//
// It goes on while a minority of the servers is down. A server that was started or flushed
// recently, or has taken over from another, may have forgotten locks: it has no vote until
// a process has watched it for a Watchdog's time. So nothing is granted right after all
// servers were started, or when they are used for the first time. What a RedLock is good
// for, and what it is not, is in docs/kinds.md and docs/guarantees.md.
func RedLock(systems ...*System) (*Red, error) {
	var runtimes []*actors.Runtime
	for _, s := range systems {
		if s.inner() == nil {
			return nil, fmt.Errorf("lockkeeper: RedLock: %w: a system is nil", ErrInvalid)
		}
		runtimes = append(runtimes, s.runtime)
	}
	if err := actors.Red(runtimes); err != nil {
		return nil, fmt.Errorf("lockkeeper: RedLock: %w: %w", ErrInvalid, err)
	}
	return &Red{home: systems[0]}, nil
}

// Lock names a lock on all the servers.
func (r *Red) Lock(name string) *Lock {
	if r == nil {
		return &Lock{wrong: errors.New("the RedLock is nil")}
	}
	return &Lock{runtime: r.home.inner(), kind: messages.Kind_KIND_RED, name: name}
}
