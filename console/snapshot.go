package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
)

// snapshot is the result of one refresh. Except for renderings, it does not change.
type snapshot struct {
	At time.Time `json:"at"`
	// Client is the client UUID of the System.
	Client  string   `json:"client"`
	Systems []system `json:"systems"`
	// Locks are the locks and synchronizers that this System holds or waits for. In a view they are one page of these
	// locks, or the lock that is looked up.
	Locks []lock `json:"locks"`
	// Held is the number of holds in this System.
	Held int `json:"held"`
	// Waiters is the number of waiting requests in this System.
	Waiters int `json:"waiters"`
	// Counts is nil without a Journal.
	Counts *counts `json:"counts,omitempty"`
	// Rates is nil without a Journal.
	Rates  *rates  `json:"rates,omitempty"`
	Events []Event `json:"events"`
	// Errors are the errors of the refresh. In a snapshot they concern all viewers; a view also has the errors of its
	// locks.
	Errors []string `json:"errors,omitempty"`
	// MoreSystems is the number of Systems that were left out.
	MoreSystems int `json:"more_systems,omitempty"`
	// MoreLocks is the number of locks that were left out.
	MoreLocks int `json:"more_locks,omitempty"`
	// SystemsCut reports that there are still more Systems, whose records were not read.
	SystemsCut bool `json:"systems_cut,omitempty"`

	// closed reports whether the System is closed.
	closed bool
	// listed reports whether the System has listed its locks.
	listed bool
	// lookUps are the locks that viewers have looked up, each with its error. A lock is shared with Locks if Redis was
	// asked about its row.
	lookUps    map[lockID]*lock
	renderings *renderings
}

func (s *snapshot) fresh(interval time.Duration) bool { return time.Since(s.At) < interval }

// has reports whether the lock was looked up, if there is one.
func (s *snapshot) has(id lockID) bool { return id.name == "" || s.lookUps[id] != nil }

// system describes a process, from its record.
type system struct {
	Client      string     `json:"client"`
	Application string     `json:"application,omitempty"`
	Host        string     `json:"host,omitempty"`
	PID         int        `json:"pid,omitempty"`
	Since       *time.Time `json:"up_since,omitempty"`
	Version     string     `json:"version,omitempty"`
	// Seen is the time since the record was renewed, in ms.
	Seen    int64 `json:"seen"`
	Overdue bool  `json:"overdue,omitempty"`
	// Here reports whether the process is the System of the console.
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
	// Held reports whether the lock is held.
	Held bool `json:"held"`
	// Here reports whether this System holds the lock.
	Here bool `json:"here"`
	// Shared reports whether readers hold the lock.
	Shared bool `json:"shared,omitempty"`
	// Holders is the number of clients that hold the lock in Redis; the number of holds here if Redis was not asked.
	Holders int `json:"holders"`
	// Owner is the owner field of a holder.
	Owner string `json:"owner,omitempty"`
	// Owners are all owner fields, for a forced release.
	Owners []string `json:"owners,omitempty"`
	// Process is the process of Owner.
	Process *system `json:"process,omitempty"`
	// Note is the note of the hold; see lockkeeper.WithNote.
	Note  string `json:"note,omitempty"`
	Count int    `json:"count,omitempty"`
	// Since is when the lock was granted here. For a holder in another process it is the time from its record, or the
	// time at which the console first saw the holder, whichever is earlier.
	Since *time.Time `json:"since,omitempty"`
	// AtLeast reports that the holder may have held the lock before Since, because it is in another process.
	AtLeast bool  `json:"at_least,omitempty"`
	Token   int64 `json:"token,omitempty"`
	// Lease is the rest of the lease; negative if the key has no TTL.
	Lease int64 `json:"lease,omitempty"`
	// Waiters is the number of requests that wait in this System.
	Waiters int `json:"waiters"`
	// Waiting is the time for which the first of these requests has waited. In the list of all Systems it is the time
	// for which a process has waited, as far as that is known.
	Waiting int64 `json:"waiting,omitempty"`
	// Listeners is the number of subscribed clients; for a fair lock, the length of the queue.
	Listeners inspect.Number `json:"listeners"`
	// HolderWaiters is the number of requests that wait in the process of another holder, from its record of some
	// seconds ago.
	HolderWaiters inspect.Number `json:"holder_waiters"`
	// State is the state of a semaphore or a latch in Redis, in words.
	State string `json:"state,omitempty"`
	// Takers are the processes that have permits of an expirable semaphore, each with its number of permits; only in a
	// look-up, and only WithFleet.
	Takers []string `json:"takers,omitempty"`
	// Asked reports whether Redis was asked about this lock. If not, the fields are from this System
	// alone.
	Asked bool `json:"asked"`
	// Problems describe invalid data in Redis.
	Problems []string `json:"problems,omitempty"`

	// err is the error of asking Redis.
	err error
}

// Others describes how many requests wait in other processes, as far as that is known; "" if there are none.
func (l lock) Others() string {
	if !l.Asked || l.State != "" {
		return ""
	}
	var all []string
	switch {
	case !l.Listeners.Known:
		all = append(all, "an unknown number of processes")
	case l.Listeners.N == 0:
	case l.Kind == inspect.KindFair:
		all = append(all, l.Listeners.String()+" in the queue")
	case l.Listeners.N == 1:
		all = append(all, "1 process in all")
	default:
		all = append(all, l.Listeners.String()+" processes in all")
	}
	if l.Held && !l.Here && l.Kind != inspect.KindFair {
		if l.HolderWaiters.Known {
			all = append(all, fmt.Sprintf("%v in the holder’s process, %s ago",
				l.HolderWaiters, age(time.Duration(l.Process.Seen)*time.Millisecond)))
		} else {
			all = append(all, "an unknown number in the holder’s process")
		}
	}
	return strings.Join(all, ", ")
}

// newSnapshot returns an empty snapshot.
func (c *console) newSnapshot() *snapshot {
	return &snapshot{Client: c.sys.ID(), renderings: &renderings{}}
}

// addError adds the text of an error, unless it is nil or its text is there already.
func (s *snapshot) addError(err error) {
	if err == nil || len(s.Errors) >= maxErrors {
		return
	}
	if text := err.Error(); !slices.Contains(s.Errors, text) {
		s.Errors = append(slices.Clip(s.Errors), text) // others may share them
	}
}

func (l *lock) id() lockID { return lockID{l.Kind, l.Name} }

// byWait compares for the order of the rows: the longest wait is first, then the longest hold.
func byWait(a, b lock) int { return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), byHold(a, b)) }

// byHold puts the longest hold first, and locks that are not held last.
func byHold(a, b lock) int { return a.since().Compare(b.since()) }

func byName(a, b lock) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
}

// since returns Since for sorting; a lock without it is the last.
func (l lock) since() time.Time {
	if l.Since == nil {
		return time.UnixMilli(1 << 50)
	}
	return *l.Since
}

// local converts the state of a lock in the System.
func local(info lockkeeper.LockInfo, now time.Time) lock {
	l := lock{
		Name: info.Name, Kind: info.Kind.LogValue().String(), Held: info.Held, Here: info.Held, Shared: info.Shared, Holders: info.Holders,
		Count: info.Count, Note: info.Note, Token: info.Token, Waiters: info.Waiters, Waiting: info.Waiting.Milliseconds(),
	}
	if info.Held {
		since := now.Add(-info.Age)
		l.Since, l.Lease = &since, info.Lease.Milliseconds()
	}
	return l
}
