package lockkeeper

import (
	"errors"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// FencedLock returns the lock of that name whose holds have a fencing token, Redisson's
// RFencedLock; see Hold.Token. Use it if what the lock protects can check the token.
func (s *System) FencedLock(name string) *Lock {
	return &Lock{runtime: s.inner(), kind: messages.Kind_KIND_FENCED, name: name}
}

// FairLock returns the lock of that name that is granted in order of arrival across all
// processes, Redisson's fair lock. Every grant costs a round trip: use Lock unless the order matters.
func (s *System) FairLock(name string) *Lock {
	return &Lock{runtime: s.inner(), kind: messages.Kind_KIND_FAIR, name: name}
}

// ReadWriteLock returns the read/write lock of that name. Use it if many readers may work at the same time.
func (s *System) ReadWriteLock(name string) *ReadWrite {
	return &ReadWrite{system: s, name: name}
}

// ReadWrite is a read/write lock, Redisson's RReadWriteLock: either many readers hold it, or one
// writer does.
//
// A writer becomes a reader by calling Read().Acquire with the context of its write hold, and then releasing the write
// hold. A reader cannot become a writer (ErrReentry): two readers that tried would wait for each other.
type ReadWrite struct {
	system *System
	name   string
}

// Read returns the lock for readers.
func (l *ReadWrite) Read() *Lock {
	lock := l.Write()
	lock.mode = messages.Mode_MODE_SHARED
	return lock
}

// Write returns the lock for writers.
func (l *ReadWrite) Write() *Lock {
	if l == nil {
		return &Lock{invalid: errors.New("the read/write lock is nil")}
	}
	return &Lock{runtime: l.system.inner(), kind: messages.Kind_KIND_READ_WRITE, name: l.name}
}

// LockOf returns the lock that a message names, of any kind: a RedLock only on a System that is the first of
// NewRedLock, and for KIND_MULTI the MultiLock of the members. The methods of a Lock that the message cannot name fail
// with ErrInvalid.
func (s *System) LockOf(m *messages.Lock) *Lock {
	traits := request.TraitsOf(m.GetKind())
	switch several := traits.Composition == request.SeveralLocks; {
	case m == nil:
		return &Lock{invalid: errors.New("the message is nil")}
	case traits.Permits:
		return &Lock{invalid: errors.New("it is not a lock: use ExpirableSemaphore")}
	case !several && len(m.Members) > 0, several && m.Name != "":
		return &Lock{invalid: errors.New("a MultiLock has members instead of a name, and another lock has no members")}
	case several:
		var members []*Lock
		for _, one := range m.Members {
			members = append(members, s.LockOf(one))
		}
		return MultiLock(members...)
	}
	return &Lock{runtime: s.inner(), kind: m.Kind, mode: m.Mode, name: m.Name}
}

// MultiLock returns a lock that acquires all of 1 to 64 locks or none. The locks may be of any kind except MultiLock,
// and of several Systems. While the MultiLock waits for one member, it holds no other member. The loss of one member is
// the loss of the MultiLock.
//
// Release a MultiLock, and end its waits, before closing a System of its members: members of a closed
// System, and entries in their wait queues, are left to expire, and the hold is lost.
//
// No two of the locks may have the same key. The error is ErrInvalid if both are of one System, and ErrRejected if they
// are of several Systems that use the same Redis.
//
// A MultiLock has its own owner, so a caller that holds a member and acquires the MultiLock waits for itself.
func MultiLock(locks ...*Lock) *Lock {
	var list []request.Member
	for _, l := range locks {
		if err := l.checkUsable(); err != nil {
			return &Lock{invalid: err}
		}
		list = append(list, request.Member{System: l.runtime, Kind: l.kind, Mode: l.mode, Name: l.name})
	}
	members, err := request.NewMembers(list)
	if err != nil {
		return &Lock{invalid: err}
	}
	return &Lock{runtime: members.Home().(*actors.Runtime), kind: messages.Kind_KIND_MULTI, members: members}
}

// RedLock provides locks on a majority of independent Redis servers, which survive the loss of a server; see
// NewRedLock.
type RedLock struct{ home *System }

// NewRedLock returns a RedLock on independent Redis servers. A RedLock needs one System for each server, at least 3,
// usually 3 or 5, with the same Config in all processes. The first System runs the lock actors, and its guardian takes
// the requests by message (KIND_RED). The error is ErrInvalid if the Systems cannot form a RedLock, for instance
// because two are on the same server.
//
// NewRedLock waits at most half a second for the servers to identify themselves. A server that does
// not answer (see ConnectLater for one that is down) is identified when it first votes: if two
// turn out to be the same, requests fail with ErrRejected.
//
// A RedLock keeps working while a minority of its servers is down. A server that was recently started, flushed or
// promoted may have forgotten locks, so it has no vote until the process has watched it for the length of
// Config.Watchdog. That is why no lock is granted just after all servers have started or when they are first used.
// docs/kinds.md and docs/guarantees.md describe the use of a RedLock and its limits.
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
