// Package backend provides the places where a lock can live, behind one interface: one Redis,
// all of several locks (a MultiLock), or a majority of servers (a RedLock). Members of a
// MultiLock that are in one slot are taken by one script, as a batch.
//
// A backend carries out the commands of package lock and makes no decisions about holds. It
// never waits: its Receiver gets the reply to a command. A release that must be repeated until
// nothing stays in Redis is a cleanup, which the Server runs in the background.
package backend

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Backend is where a lock lives. It works for one Receiver. Its methods may be called on any
// goroutine, and do not block.
type Backend interface {
	Place
	// Run carries out a command by the deadline, and delivers the reply to the Receiver.
	Run(c lock.Command, deadline time.Time)
	// CleanUp repeats a command that frees what a term may hold, in the background, until it is
	// certain that nothing is left, or MaxTTL is over. At the end it calls done, which must not
	// block, with whether that is certain. A Server that is closed tries once.
	CleanUp(c lock.Command, done func(certain bool))
}

// Place is what the places of locks and of permits have in common.
type Place interface {
	// Inspect reads the state of the lock. It calls done once, on any goroutine; done must not
	// block.
	Inspect(deadline time.Time, done func(protocol.View, error))
	// Channels returns the channels on which a waiter of that term hears of a release.
	Channels(term uint64) []Channel
}

// Receiver is the user of a Backend: a lock actor.
type Receiver interface {
	// Replied gets the reply to the command of that Seq, once, on any goroutine. It must not
	// block.
	Replied(seq uint64, r Reply)
	// Lend is called by Run. It reports whether it takes over the call, so that a goroutine that
	// would only wait for the reply runs it.
	Lend(kind lock.CommandKind, call redisio.Call) bool
}

// Reply is the reply to a command.
type Reply struct {
	lock.Result
	// Busy are the channels of the parts that others hold. Messages on the other channels carry
	// no news; some are caused by our own roll-backs.
	Busy []Channel
}

// failed reports whether a release with that reply has to go on in the background, if nobody
// else repeats it. A release that was refused for good is tried once more, and then left to
// expire: Close must know of it.
func (r Reply) failed() bool { return r.Outcome == lock.Failed }

// Channel is a channel of one Redis.
type Channel struct {
	Server *Server
	Name   string
	// Waiters is the channel of redisio.Waiters, "" for a lock without a line.
	Waiters string
}

// part is a lock that may be a part of others.
type part interface {
	// run carries out a command by the deadline; it calls done once, on any goroutine; done must
	// not block.
	run(c lock.Command, deadline time.Time, done func(Reply))
	inspect(deadline time.Time, done func(protocol.View, error))
	channels() []Channel
	// only is the server of the part; nil if it has several.
	only() *Server
	// cleanUp starts a cleanup of what a term may hold, at once; see Backend.CleanUp.
	cleanUp(c lock.Command, done func(certain bool))
	// retryRelease starts a cleanup after a release that has just failed, after a pause.
	retryRelease(c lock.Command)
}

// look is the state of the lock as one part reports it.
type look struct {
	protocol.View
	err error
}

// rollBackTime bounds a roll-back, even if the deadline of the command is over.
const rollBackTime = time.Second

// several makes a lock of several parts a Backend.
type several struct {
	part
	to Receiver
}

func (s *several) Run(c lock.Command, deadline time.Time) {
	s.run(c, deadline, func(r Reply) { s.to.Replied(c.Seq, r) })
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
