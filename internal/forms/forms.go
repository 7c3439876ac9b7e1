// Package forms has the table of the forms in which locks on one Redis are stored there: the keys, the channels and the
// scripts of each. The rights of ACL users, the commands and the inspections of locks follow from it.
package forms

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Form is a form of locks. Its functions derive a key or a channel from the name of a lock, which is its own key. They
// are nil for keys and channels that the form does not have.
type Form struct {
	// Name names the kinds of the form in the rights of ACL users.
	Name string
	// Channel is the channel of the release. With a Queue, it is the beginning of the channels of the waiters.
	Channel func(name string) string
	// Tokens is the counter of the fencing tokens.
	Tokens func(name string) string
	// WaitQueue has the processes that wait. With a Queue, it stays empty.
	WaitQueue func(name string) string
	// WaitOrder is the order of the processes in the WaitQueue.
	WaitOrder func(name string) string
	// Queue is a queue of the waiters of all processes, which decides which is next.
	Queue func(name string) string
	// Timeouts are the times at which the waiters in the Queue are considered dead.
	Timeouts func(name string) string
	// Leases is the beginning of the keys of the readers' leases.
	Leases func(name string) string
	// Scripts are the scripts of the commands.
	Scripts []*scripts.Script
	// Member has the words for members of MultiLocks.
	Member Member
}

// Member has the words by which the scripts about several locks know the form of a member of a MultiLock.
type Member struct {
	// Word is for a member that excludes all others. Without it, locks of the form cannot be members.
	Word string
	// Fenced is for a member that also draws a token.
	Fenced string
	// Shared is for a member in the shared mode.
	Shared string
}

var plainScripts = []*scripts.Script{
	scripts.Acquire, scripts.Release, scripts.Renew, scripts.Keep, scripts.Yield, scripts.ForceRelease, scripts.Inspect,
}

// The forms.
var (
	// Plain includes fencing tokens: the process that releases a plain lock draws the token of the process to which the
	// lock is transferred.
	Plain = &Form{
		Name:      "plain and fenced",
		Channel:   keyspace.Channel,
		Tokens:    keyspace.Token,
		WaitQueue: keyspace.WaitQueue,
		WaitOrder: keyspace.WaitOrder,
		Scripts:   slices.Concat([]*scripts.Script{scripts.FencedAcquire, scripts.Draw}, plainScripts),
		Member:    Member{Word: "plain", Fenced: "fenced"},
	}
	Fair = &Form{
		Name:      "fair",
		Channel:   keyspace.Channel,
		WaitQueue: keyspace.WaitQueue,
		WaitOrder: keyspace.WaitOrder,
		Queue:     keyspace.Queue,
		Timeouts:  keyspace.Timeouts,
		Scripts:   slices.Concat([]*scripts.Script{scripts.SyncQueue, scripts.FairForceRelease, scripts.FairInspect}, plainScripts),
		Member:    Member{Word: "fair"},
	}
	ReadWrite = &Form{
		Name:      "read/write",
		Channel:   keyspace.ReadWriteChannel,
		WaitQueue: keyspace.ReadWriteQueue,
		WaitOrder: keyspace.ReadWriteOrder,
		Leases:    keyspace.Holds,
		Scripts: []*scripts.Script{
			scripts.ReadWriteSet, scripts.ReadWriteRelease, scripts.ReadWriteRenew, scripts.ReadWriteYield,
			scripts.ReadWriteForceRelease, scripts.ReadWriteInspect, scripts.CountWaiters,
		},
		Member: Member{Word: "write", Shared: "read"},
	}
)

// All are all forms.
var All = []*Form{Plain, Fair, ReadWrite}

// Derived is a key or a channel that is derived from the name of a lock.
type Derived struct {
	From func(name string) string
	// More is the pattern of what follows.
	More string
}

// Keys returns the keys besides the lock's own.
func (f *Form) Keys() (all []Derived) {
	for _, from := range []func(string) string{f.Tokens, f.WaitQueue, f.WaitOrder, f.Queue, f.Timeouts} {
		if from != nil {
			all = append(all, Derived{From: from})
		}
	}
	if f.Leases != nil {
		all = append(all, Derived{f.Leases, ":*"})
	}
	return all
}

// Channels returns the channels of the release.
func (f *Form) Channels() []Derived {
	all := []Derived{{From: f.Channel}} // of a form with a Queue for MultiLocks
	if f.Queue != nil {
		all = append(all, Derived{f.Channel, ":*"})
	}
	return all
}
