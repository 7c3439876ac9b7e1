// Package backend stores locks, semaphores and latches in Redis. A Backend stores a lock on one Redis, as all of
// several locks (a MultiLock), or on a majority of servers (a RedLock). Members of a MultiLock that are in one slot are
// taken by one script, as a batch. A Semaphore stores a semaphore or a latch, and an ExpirableSemaphore an expirable
// semaphore.
//
// A backend carries out the commands of the machines, and makes no decisions about holds. It never waits: its
// Receiver gets the reply to a command. A release that must be repeated until nothing stays in Redis is a
// cleanup, which the Server runs in the background.
//
// # Files
//
//	backend.go                   the interfaces of locks, and of the parts of locks
//	single.go member.go          a lock with one key, by itself or as a member of another lock
//	composite.go                 MultiLocks and RedLocks, and which scripts take their members
//	multilock.go multilock_acquire.go
//	                             all parts or none: a MultiLock
//	batch.go                     the members that one script takes
//	queue_entries.go same_named.go
//	                             the entries that a try leaves; one key under two members
//	majority.go majority_acquire.go majority_tally.go majority_late.go
//	                             a majority of servers: a RedLock; its votes, and servers that are late
//	majority_force.go majority_inspect.go unanswered.go
//	                             the rest of it; commands that may still shorten a lease
//	force.go                     forced releases
//	semaphore.go expirable.go    semaphores and latches
//	server.go record.go          a Redis; the record of the System there
//	health.go memory.go          whether a server answers, and since when it has its data
//	counters.go                  the highest fencing tokens
//	cleanups.go collect.go       releases in the background; the answers of several parts
package backend

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// Backend stores one lock, for one Receiver. Its methods may be called on any goroutine, and do not block.
type Backend interface {
	// Run carries out a command by the deadline, and delivers the reply to the Receiver.
	Run(c lock.Command, deadline time.Time)
	// CleanUp repeats the release of a term in the background, until it is certain that nothing is left, or MaxTTL has
	// passed. At the end it calls done, which must not block, and reports whether it is certain that nothing is left. A
	// closed Server tries once.
	CleanUp(c lock.Command, done func(certain bool))
	// Inspect reads the state of the lock. It calls done once, on any goroutine; done must not block.
	Inspect(deadline time.Time, done func(protocol.View, error))
	// Channels returns the channels on which a waiter of that term is notified of a release.
	Channels(term uint64) []Channel
}

// Receiver is the user of a Backend: a lock actor.
type Receiver interface {
	// Replied gets the reply to the command of that Seq, once, on any goroutine. It must not block.
	Replied(seq uint64, r Reply)
	// Lend is called by Run. It reports whether it takes over the call, so that the goroutine that waits for the
	// reply can run it.
	Lend(kind lock.CommandKind, call redisclient.Call) bool
}

// Reply is the reply to a command.
type Reply struct {
	lock.Result
	// Busy are the channels of the parts that other owners hold, or that may be free by now: before the lock can be
	// taken, a message comes on one of these channels. Messages on other channels may be ignored; some come from
	// roll-backs of this backend.
	Busy []Channel
}

// failed reports whether a release with that reply must continue in the background, unless its caller repeats it.
// A release that was refused permanently is tried once more, and then left to expire: Close must know of it.
func (r Reply) failed() bool { return r.Outcome == lock.Failed }

// Channel is a channel of one Redis.
type Channel struct {
	Server *Server
	Name   string
	// Waiters is the channel of keyspace.Waiters, "" for a lock without a wait queue.
	Waiters string
}

// lockPart is a lock that may be a part of another lock: a member, a batch of members, a majority, or a multiLock.
type lockPart interface {
	// run carries out a command by the deadline. It calls done once, on any goroutine; done must not block.
	run(c lock.Command, deadline time.Time, done func(Reply))
	inspect(deadline time.Time, done func(protocol.View, error))
	channels() []Channel
	// onlyServer returns the server of the part; nil if it has several.
	onlyServer() *Server
	// cleanUp starts a cleanup of a term at once; see Backend.CleanUp.
	cleanUp(c lock.Command, done func(certain bool))
	// retryRelease starts a cleanup after a pause, since a release has just failed.
	retryRelease(c lock.Command)
}

// inspection is the state of the lock that one part reports.
type inspection struct {
	protocol.View
	err error
	on  *member // nil for the part of a MultiLock
}

// rollBackTime bounds a roll-back, even if the deadline of the command has passed.
const rollBackTime = time.Second

// asRelease returns the full release of a command's term.
func asRelease(c lock.Command) lock.Command {
	c.Kind, c.Count, c.Shared = lock.Release, 0, 0
	return c
}

// isFull reports whether a command frees the lock. A release that leaves a hold count does not:
// the hold continues, and no part of it may be freed.
func isFull(c lock.Command) bool {
	return c.Kind == lock.Release && c.Count == 0 && c.Shared == 0
}
