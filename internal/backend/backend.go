// Package backend stores locks, semaphores and latches in Redis. A Backend stores a lock on one Redis, as all of several
// locks (a MultiLock), or on a majority of servers (a RedLock). Members of a MultiLock that are in one slot are taken by
// one script, as a batch. A Semaphore stores a semaphore or a latch, and an ExpirableSemaphore an expirable semaphore.
//
// A backend carries out the commands of the machines, and makes no decisions about holds. It never waits: its
// Receiver gets the reply to a command. A release that must be repeated until nothing stays in Redis is a
// cleanup, which the Server runs in the background.
package backend

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// Backend stores one lock, for one Receiver. Its methods may be called on any goroutine, and do not block.
type Backend interface {
	Place
	// Run carries out a command by the deadline, and delivers the reply to the Receiver.
	Run(c lock.Command, deadline time.Time)
	// CleanUp repeats the release of a term in the background, until it is certain that nothing is left, or MaxTTL is
	// over. At the end it calls done, which must not block, and reports whether it is certain that nothing is left. A
	// closed Server tries once.
	CleanUp(c lock.Command, done func(certain bool))
}

// Place has the methods that the backends of locks and of expirable semaphores share.
type Place interface {
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
	// Busy are the channels of the parts that other owners hold, or that may be free by now: a message on one of these
	// channels comes before the lock can be taken. Messages on other channels may be ignored; some come from roll-backs
	// of this backend.
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

// part is a lock that may be a part of another lock.
type part interface {
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

// rollBackTime bounds a roll-back, even if the deadline of the command is over.
const rollBackTime = time.Second

// several makes a lock of several parts a Backend.
type several struct {
	part
	to Receiver
}

func (s *several) Run(c lock.Command, deadline time.Time) {
	s.run(c, deadline, func(r Reply) {
		r.Alone = false // also for a single part: other processes cannot ask its owner for the lock
		s.to.Replied(c.Seq, r)
	})
}

func (s *several) Inspect(deadline time.Time, done func(protocol.View, error)) {
	s.inspect(deadline, done)
}

func (s *several) Channels(uint64) []Channel { return s.channels() }

func (s *several) CleanUp(c lock.Command, done func(certain bool)) { s.cleanUp(c, done) }

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
