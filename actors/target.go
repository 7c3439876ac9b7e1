package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// target is what a lock is in Redis, if that is not one lock on one server: all of
// several locks, or a majority of servers. It is made of parts that are targets too.
type target interface {
	// run carries out a command by the deadline; done is told what came of it, once, on
	// some goroutine, and must not block.
	run(c core.Command, deadline time.Time, done func(verdict))
	// inspect looks at it, likewise.
	inspect(deadline time.Time, done func(wire.View, error))
	// cleanUp goes on, in the background, with the release of a term that has failed.
	cleanUp(c core.Command)
	// ears are where its release is told.
	ears() []ear
}

// verdict is the result of a target's command.
type verdict struct {
	core.Result
	// busy are the channels of those parts that somebody else holds. Messages on the
	// others say nothing new; some of them are the echo of our own roll-backs.
	busy []ear
}

// ear is a channel of one Redis.
type ear struct {
	rt      *Runtime
	channel string
}

// leaf is one lock on one Redis as a part of something bigger.
type leaf struct {
	rt     *Runtime
	member wire.Member
	mu     sync.Mutex // guards the making of calls
	// granted is the last term that has, or may have, got the lock by a vote.
	granted atomic.Uint64
}

func (l *leaf) run(c core.Command, deadline time.Time, done func(verdict)) {
	c = l.member.Command(c)
	to := leafReply{leaf: l, done: done}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Kind == core.Renew {
		renewal := l.member.Renewal(&c, deadline)
		renewal.To = to
		l.rt.redis.Renew(renewal)
		return
	}
	call := l.member.Call(&c, deadline)
	call.To = to
	l.rt.redis.Run(call)
}

// vote is Acquire on one of several independent servers.
func (l *leaf) vote(c core.Command, quarantine time.Duration, deadline time.Time, done func(verdict)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.member.Vote(&c, quarantine, l.rt.known(), uuid.NewString(), deadline)
	call.To = voteReply{leafReply{leaf: l, done: done}, quarantine}
	l.rt.redis.Run(call)
}

// release releases what an owner holds, whichever client's it is.
func (l *leaf) release(owner string, deadline time.Time, done func(verdict)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call := l.member.ReleaseOf(owner, deadline)
	call.To = leafReply{leaf: l, done: done}
	l.rt.redis.Run(call)
}

// owner is the owner of that term in Redis.
func (l *leaf) owner(term uint64) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.member.Owner(term)
}

// cleanUp goes on with a release that has failed, until it is confirmed or the key has expired.
func (l *leaf) cleanUp(c core.Command) {
	l.rt.cleanups.add(cleanup{leaf: l, owner: l.owner(c.Term), until: l.rt.Now() + max(c.MaxTTL, c.Lease)})
}

// owe does so if the term may have the lock by a vote. A vote that is still under way is
// given back when it is answered.
func (l *leaf) owe(c core.Command) {
	if l.granted.Load() == c.Term {
		l.cleanUp(c)
	}
}

// undo releases at once what a command may have taken, and goes on until that is certain.
func (l *leaf) undo(c core.Command) {
	l.run(asRelease(c), time.Now().Add(cleanupTime), func(v verdict) {
		if v.failed() {
			l.cleanUp(c)
		}
	})
}

// leafReply reads the reply for whoever is waiting for it.
type leafReply struct {
	leaf *leaf
	done func(verdict)
}

// Replied implements redisio.Receiver.
func (r leafReply) Replied(tag uint64, reply redisio.Reply) {
	_, result := r.leaf.member.Read(tag, reply)
	v := verdict{Result: result}
	if result.Outcome == core.Refused {
		v.busy = r.leaf.ears()
	}
	r.done(v)
}

// voteReply takes note of what a vote tells of the server's memory.
type voteReply struct {
	leafReply
	quarantine time.Duration
}

// Replied implements redisio.Receiver.
func (r voteReply) Replied(tag uint64, reply redisio.Reply) {
	if reply.Err == nil {
		age := time.Duration(0)
		name, out := wire.Voted(reply)
		if out > 0 {
			age = r.quarantine - out
		}
		r.leaf.rt.memory.seen(name, age, r.leaf.rt.Now())
	}
	r.leafReply.Replied(tag, reply)
}

func (l *leaf) inspect(deadline time.Time, done func(wire.View, error)) {
	call := l.member.Inspect(deadline)
	call.To = viewReply{lock: l.member.Lock, done: done}
	l.rt.redis.Run(call)
}

// viewReply reads the reply to Inspect.
type viewReply struct {
	lock *wire.Lock
	done func(wire.View, error)
}

// Replied implements redisio.Receiver.
func (r viewReply) Replied(tag uint64, reply redisio.Reply) {
	if reply.Err != nil {
		r.done(wire.View{}, reply.Err)
		return
	}
	r.done(r.lock.View(tag, reply), nil)
}

func (l *leaf) ears() []ear { return []ear{{l.rt, l.member.Channel}} }

// gather collects one answer of each of n parts. After each, judge says what to do about
// those that have come, if anything, and whether the rest matters. It is done after the
// gathering is open again: it may well run the lock actor.
type gather[T any] struct {
	mu      sync.Mutex
	answers []T
	n       int
	over    bool
	judge   func(answers []T, last bool) (act func(), over bool)
}

// add brings one answer; it comes late if the rest does not matter any more.
func (g *gather[T]) add(answer T) (late bool) {
	act, late := g.judged(answer)
	if act != nil {
		act()
	}
	return late
}

func (g *gather[T]) judged(answer T) (act func(), late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil, true
	}
	g.answers = append(g.answers, answer)
	act, g.over = g.judge(g.answers, len(g.answers) == g.n)
	return act, false
}

// cut ends the gathering without the answers that have not come, unless it is over.
func (g *gather[T]) cut(judge func(answers []T) (act func())) {
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return
	}
	g.over = true
	act := judge(g.answers)
	g.mu.Unlock()
	act()
}

// atLast waits for all answers.
func atLast[T any](act func(answers []T)) func([]T, bool) (func(), bool) {
	return func(answers []T, last bool) (func(), bool) {
		if !last {
			return nil, false
		}
		return func() { act(answers) }, true
	}
}
