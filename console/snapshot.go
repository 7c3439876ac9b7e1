package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// snapshot is what one look has found. It does not change.
type snapshot struct {
	At time.Time `json:"at"`
	// Client is the client UUID of the System.
	Client  string   `json:"client"`
	Systems []system `json:"systems"`
	// Locks are those that this System holds or waits for, with what is no lock, and those that somebody
	// has looked up.
	Locks []lock `json:"locks"`
	// Held and Waiters count the holds and the requests that wait, in this System.
	Held    int `json:"held"`
	Waiters int `json:"waiters"`
	// Counts and Rates are nil without a Journal.
	Counts *counts `json:"counts,omitempty"`
	Rates  *rates  `json:"rates,omitempty"`
	Events []Event `json:"events"`
	// Errors are what could not be found out.
	Errors []string `json:"errors,omitempty"`
	// MoreSystems and MoreLocks are how many were left out.
	MoreSystems int `json:"more_systems,omitempty"`
	MoreLocks   int `json:"more_locks,omitempty"`

	// closed reports whether the System is closed.
	closed bool
	asked  map[named]bool
}

func (s *snapshot) fresh(interval time.Duration) bool { return time.Since(s.At) < interval }

// has reports whether the snapshot has the lock, if one is named.
func (s *snapshot) has(n named) bool { return n.name == "" || s.asked[n] }

// system is a process, by its record.
type system struct {
	Client      string     `json:"client"`
	Application string     `json:"application,omitempty"`
	Host        string     `json:"host,omitempty"`
	PID         int        `json:"pid,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
	Version     string     `json:"version,omitempty"`
	// Seen is how many ms ago the record was renewed.
	Seen    int64 `json:"seen"`
	Overdue bool  `json:"overdue,omitempty"`
	// Here is the System of the console.
	Here bool `json:"here,omitempty"`
}

func systemOf(p lockkeeper.Process, here string) system {
	s := system{
		Client: p.Client, Application: p.Application, Host: p.Host, PID: p.PID, Version: p.Version,
		Seen: p.Seen.Milliseconds(), Overdue: p.Overdue, Here: p.Client == here,
	}
	if p.Known() {
		s.Since = &p.Since
	}
	return s
}

// lock is a lock as this System and Redis know it. Times are in ms.
type lock struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Held reports whether anybody holds it; Here, whether this System does; Shared, whether
	// readers do.
	Held   bool `json:"held"`
	Here   bool `json:"here"`
	Shared bool `json:"shared,omitempty"`
	// Holders are the clients that hold it in Redis; if that was not asked, the holds here.
	Holders int `json:"holders"`
	// Owner is the owner field of a holder, and Process its process.
	Owner string `json:"owner,omitempty"`
	// Owners are all owner fields, for a forced release.
	Owners  []string `json:"owners,omitempty"`
	Process *system  `json:"process,omitempty"`
	Count   int      `json:"count,omitempty"`
	// Since is when the lock was granted here. For a holder elsewhere it is when the console saw
	// it first, and AtLeast is true.
	Since   *time.Time `json:"since,omitempty"`
	AtLeast bool       `json:"at_least,omitempty"`
	Token   int64      `json:"token,omitempty"`
	// Lease is the rest of the lease; negative if the key has no TTL.
	Lease int64 `json:"lease,omitempty"`
	// Waiters are the requests that wait in this System, Waiting is for how long the first of
	// them has, and Listeners are the clients that wait; of a fair lock, the length of the queue.
	Waiters   int   `json:"waiters"`
	Waiting   int64 `json:"waiting,omitempty"`
	Listeners int   `json:"listeners"`
	// Asked reports whether Redis was asked for this lock. If not, only what this System knows
	// is said.
	Asked bool `json:"asked"`
}

// look finds out everything.
func (c *console) look(ctx context.Context, names []named) *snapshot {
	s := &snapshot{Client: c.sys.ID(), asked: map[named]bool{}}
	if processes, err := c.sys.Systems(ctx); err != nil {
		s.failed(err)
	} else {
		s.addSystems(processes)
	}
	all, err := c.sys.Locks(ctx)
	s.failed(err)
	for _, info := range all {
		s.Locks = append(s.Locks, local(info, time.Now()))
		s.Held += info.Holders
		s.Waiters += info.Waiters
	}
	// Who waits for others is asked about first, then who has held a lock for long.
	slices.SortStableFunc(s.Locks, func(a, b lock) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), a.since().Compare(b.since()))
	})
	for _, n := range names {
		s.addNamed(n)
	}
	for i := range s.Locks {
		if i >= mostRows && !s.asked[s.Locks[i].named()] {
			continue
		}
		if err := c.ask(ctx, &s.Locks[i]); err != nil && s.failed(err) {
			break
		}
	}
	s.At = time.Now()
	c.history.compare(s)
	if c.journal != nil {
		s.Counts = c.journal.count()
		s.Rates = c.history.rates(s.At, *s.Counts)
	}
	return s
}

// failed adds an error, and reports whether it is in vain to ask on.
func (s *snapshot) failed(err error) (final bool) {
	if err == nil {
		return false
	}
	if text := err.Error(); !slices.Contains(s.Errors, text) && len(s.Errors) < 3 {
		s.Errors = append(s.Errors, text)
	}
	s.closed = s.closed || errors.Is(err, lockkeeper.ErrClosed)
	return !errors.Is(err, lockkeeper.ErrRejected) && !errors.Is(err, lockkeeper.ErrInvalid)
}

func (s *snapshot) addSystems(processes []lockkeeper.Process) {
	for _, p := range processes {
		s.Systems = append(s.Systems, systemOf(p, s.Client))
	}
	slices.SortFunc(s.Systems, func(a, b system) int {
		return cmp.Or(strings.Compare(a.Application, b.Application), strings.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), strings.Compare(a.Client, b.Client))
	})
}

// addNamed adds a lock that somebody has looked up, if it is not there.
func (s *snapshot) addNamed(n named) {
	if s.asked[n] {
		return
	}
	s.asked[n] = true
	if !slices.ContainsFunc(s.Locks, func(l lock) bool { return l.named() == n }) {
		s.Locks = append(s.Locks, lock{Name: n.name, Kind: n.kind})
	}
}

func (l lock) named() named { return named{l.Kind, l.Name} }

// since orders locks by their age; one that is not held here is the last.
func (l lock) since() time.Time {
	if l.Since == nil {
		return time.UnixMilli(1 << 50)
	}
	return *l.Since
}

// The kinds by which a lock can be looked up.
const (
	plain     = "plain"
	fenced    = "fenced"
	fair      = "fair"
	readWrite = "read_write"
)

var kinds = []string{plain, fenced, fair, readWrite}

// lock is a lock by its kind and name; nil if it cannot be looked up by them.
func (c *console) lock(kind, name string) *lockkeeper.Lock {
	switch {
	case name == "" || len(name) > mostName:
	case kind == plain:
		return c.sys.Lock(name)
	case kind == fenced:
		return c.sys.FencedLock(name)
	case kind == fair:
		return c.sys.FairLock(name)
	case kind == readWrite:
		return c.sys.ReadWriteLock(name).Write()
	}
	return nil
}

// local is a lock as the System knows it without Redis.
func local(info lockkeeper.LockInfo, now time.Time) lock {
	l := lock{
		Name: info.Name, Kind: info.Kind.LogValue().String(), Held: info.Held, Here: info.Held, Shared: info.Shared, Holders: info.Holders,
		Count: info.Count, Token: info.Token, Waiters: info.Waiters, Waiting: info.Waiting.Milliseconds(),
	}
	if info.Held {
		since := now.Add(-info.Age)
		l.Since, l.Lease = &since, info.Lease.Milliseconds()
	}
	return l
}

// ask adds what Redis knows of a lock.
func (c *console) ask(ctx context.Context, l *lock) error {
	by := c.lock(l.Kind, l.Name)
	if by == nil {
		return nil // a MultiLock or a RedLock, which this System knows as a whole; permits, a semaphore, a latch
	}
	status, err := by.Inspect(ctx)
	if err != nil {
		return err
	}
	l.Asked, l.Held, l.Shared, l.Holders, l.Owner, l.Count = true, status.Locked, status.Locked && status.Shared, status.Holders, status.Holder, status.HoldCount
	l.Owners = status.Owners
	l.Lease, l.Listeners, l.Waiters, l.Waiting, l.Token = 0, status.Subscribers, status.Waiters, status.WaitingFor.Milliseconds(), status.Token
	if l.Here = status.HeldHere; l.Here {
		since := time.Now().Add(-status.HeldFor)
		l.Since = &since
	} else {
		l.Since = nil
	}
	if l.Held {
		process := systemOf(status.Process, c.sys.ID())
		if l.Process, l.Lease = &process, status.TTL.Milliseconds(); status.TTL < 0 {
			l.Lease = -1
		}
	}
	return nil
}
