package lockkeeper

import (
	"errors"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// FencedLock returns the reentrant lock of that name whose holds have a fencing token,
// Redisson's RFencedLock; see Hold.Token. Use it if what the lock protects can check the token.
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
// A writer becomes a reader by calling Read().Acquire with the context of its write hold, and
// then releasing the write hold. A reader cannot become a writer (ErrReentry), since two
// readers that tried would wait for each other.
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

// LockOf returns the lock that a message names, of any kind: a RedLock only on a System that is the first of NewRedLock,
// and for KIND_MULTI the MultiLock of the members. The methods of a Lock that the message cannot name fail with
// ErrInvalid.
func (s *System) LockOf(m *messages.Lock) *Lock {
	switch kind := m.GetKind(); {
	case m == nil:
		return &Lock{invalid: errors.New("the message is nil")}
	case kind == messages.Kind_KIND_EXPIRABLE_SEMAPHORE:
		return &Lock{invalid: errors.New("it is not a lock: use ExpirableSemaphore")}
	case kind != messages.Kind_KIND_MULTI && len(m.Members) > 0, kind == messages.Kind_KIND_MULTI && m.Name != "":
		return &Lock{invalid: errors.New("a MultiLock has members instead of a name, and another lock has no members")}
	case kind == messages.Kind_KIND_MULTI:
		var members []*Lock
		for _, one := range m.Members {
			members = append(members, s.LockOf(one))
		}
		return MultiLock(members...)
	}
	return &Lock{runtime: s.inner(), kind: m.Kind, mode: m.Mode, name: m.Name}
}

// MultiLock returns a lock that acquires all of 1 to 64 locks or none. They may be of any kind
// except MultiLock, and of several Systems. While it waits for one member it holds none of the
// others. The loss of one member is the loss of the MultiLock.
//
// Release a MultiLock, and end its waits, before closing a System of its members: members of a closed
// System, and places in their wait queues, are left to expire, and the hold is lost.
//
// No key may be among the locks twice. If it is in one System, the error is ErrInvalid; in several
// Systems that use the same Redis, ErrRejected.
//
// A MultiLock has an owner of its own: a caller that holds a member and acquires the MultiLock
// waits for itself.
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
