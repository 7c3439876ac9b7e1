package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// refresh returns a snapshot of this System, and of the locks that viewers look up.
func (c *console) refresh(ctx context.Context, lookUps []lockID) *snapshot {
	s := c.newSnapshot()
	processes, err := c.sys.Systems(ctx)
	if s.SystemsCut = errors.Is(err, lockkeeper.ErrMoreSystems); !s.SystemsCut {
		s.failed(err)
	}
	s.addSystems(processes)
	all, err := c.sys.Locks(ctx)
	s.failed(err)
	s.listed = err == nil
	for _, info := range all {
		s.Locks = append(s.Locks, local(info, time.Now()))
		s.Held += info.Holders
		s.Waiters += info.Waiters
	}
	slices.SortStableFunc(s.Locks, byWait)
	c.askListed(ctx, s)
	c.askLookUps(ctx, s, lookUps)
	s.At = time.Now()
	c.history.compare(s)
	s.addJournal(c.journal)
	if c.journal != nil {
		s.Counts = c.journal.count()
		s.Rates = c.history.rates(s.At, *s.Counts)
	}
	return s
}

// askListed asks Redis about the first locks of this System.
func (c *console) askListed(ctx context.Context, s *snapshot) {
	for i := range s.Locks[:min(maxRows, len(s.Locks))] {
		l := &s.Locks[i]
		err := c.ask(ctx, l)
		if ofLock := errors.Is(err, lockkeeper.ErrRejected) || errors.Is(err, lockkeeper.ErrInvalid); ofLock {
			l.err = err
		} else if err != nil {
			s.failed(err) // Redis is unavailable: the other locks would fail, too
			return
		}
	}
}

// askLookUps asks Redis about the locks that viewers look up, all concurrently, so that a slow or failed look-up does
// not affect other look-ups. An error belongs to one look-up.
func (c *console) askLookUps(ctx context.Context, s *snapshot, lookUps []lockID) {
	s.lookUps = map[lockID]*lock{}
	for _, id := range lookUps {
		s.lookUps[id] = &lock{Kind: id.kind, Name: id.name}
	}
	for i := range s.Locks {
		l := &s.Locks[i]
		switch _, ok := s.lookUps[l.id()]; {
		case !ok:
		case (l.Asked || l.err != nil) && l.Kind != inspect.KindExpirableSemaphore:
			s.lookUps[l.id()] = l
		default: // the lock is not among the first rows, or a look-up shows more: the row for other viewers does not change
			own := *l
			own.Asked, own.err = false, nil
			s.lookUps[l.id()] = &own
		}
	}
	var asking sync.WaitGroup
	for _, l := range s.lookUps {
		if !l.Asked && l.err == nil {
			asking.Go(func() {
				if l.err = c.ask(ctx, l); l.err == nil && l.Kind == inspect.KindExpirableSemaphore && c.inspector != nil {
					l.err = c.askTakers(ctx, l)
				}
			})
		}
	}
	asking.Wait()
}

// ask adds the state of a lock in Redis.
func (c *console) ask(ctx context.Context, l *lock) error {
	by := c.lock(l.Kind, l.Name)
	if by == nil {
		return c.askSynchronizer(ctx, l)
	}
	status, err := by.Inspect(ctx)
	if err != nil {
		return err
	}
	l.Asked, l.Held, l.Shared = true, status.Locked, status.Locked && status.Shared
	l.Holders, l.Owner, l.Count = status.Holders, status.Holder, status.HoldCount
	l.Owners, l.Note = status.Owners, status.Note
	l.Lease, l.Listeners = 0, inspect.Known(int64(status.Subscribers))
	l.Waiters, l.Waiting, l.Token = status.Waiters, status.WaitingFor.Milliseconds(), status.Token
	if status.HolderWaiters >= 0 {
		l.HolderWaiters = inspect.Known(int64(status.HolderWaiters))
	}
	l.Here, l.Since = status.HeldHere, nil
	held := status.HeldAtLeast
	if l.Here { // the holder may be another process, if both are readers
		held = status.HeldFor
	}
	if since := time.Now().Add(-held); l.Here || held > 0 {
		l.Since, l.AtLeast = &since, !l.Here
	}
	if l.Held {
		process := systemOf(status.Process, c.sys.ID())
		if l.Process, l.Lease = &process, status.TTL.Milliseconds(); status.TTL < 0 {
			l.Lease = -1
		}
	}
	return nil
}

// failed adds an error that concerns all viewers.
func (s *snapshot) failed(err error) {
	s.addError(err)
	s.closed = s.closed || errors.Is(err, lockkeeper.ErrClosed)
}

func (s *snapshot) addSystems(processes []lockkeeper.Process) {
	for _, p := range processes {
		s.Systems = append(s.Systems, systemOf(p, s.Client))
	}
	slices.SortFunc(s.Systems, func(a, b system) int {
		return cmp.Or(
			strings.Compare(a.Application, b.Application),
			strings.Compare(a.Host, b.Host),
			cmp.Compare(a.PID, b.PID),
			strings.Compare(a.Client, b.Client),
		)
	})
}

// addJournal adds the events of a journal, if there is one.
func (s *snapshot) addJournal(j *Journal) {
	if j != nil {
		s.Events = append(j.read(), s.Events...)
	}
}

// lockKinds are the kinds of locks that can be looked up. Synchronizers can be looked up, too; they have no holder that
// could be released by force.
var lockKinds, synchronizerKinds = kinds.Words()

// lock returns the lock of a kind and name, or nil if it cannot be asked for its holder.
func (c *console) lock(kind, name string) *lockkeeper.Lock {
	number, _ := kinds.Named(kind)
	if name == "" || len(name) > maxName || !slices.Contains(lockKinds, kind) {
		return nil
	}
	return c.sys.LockOf(&messages.Lock{Kind: number, Name: name})
}
