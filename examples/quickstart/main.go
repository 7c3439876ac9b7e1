// Quickstart shows in two seconds what Lockkeeper does: actors contend for a lock
// by messages, and are told when they lose it.
//
//	go run ./examples/quickstart
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// the same happens on a real one. The exit code is 0 if all went as told.
package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

func main() { program.Main("quickstart", play) }

// play has all acts played, on one Redis, by two processes.
func play(redis *embedded.Redis, stdout io.Writer) (err error) {
	s := newStory(stdout, redis)
	a, err := s.newProcess()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.end()) }()
	b, err := s.newProcess()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end()) }()

	for _, act := range []func(s *story, here, there *process){handOff, crowd, reentry, watchdog, death, deleted, forced} {
		act(s, a, b)
		if err := s.err(); err != nil {
			return err
		}
	}
	return s.finish()
}

// handOff: within a process the lock goes from one to the next without Redis.
func handOff(s *story, here, _ *process) {
	s.act("three actors of one process want the lock")
	names := []string{"anna", "bert", "carl"}
	for _, name := range names {
		here.clerk(name, work(time.Millisecond))
	}
	for _, name := range names {
		await[*messages.Released](s, name)
	}
}

// crowd: that is why many waiters cost Redis no more than one.
func crowd(s *story, here, _ *process) {
	const size = 1000
	s.act("a thousand actors of one process want the lock")
	began, before := time.Now(), s.redis.sent()
	for range size {
		here.clerk("", work(0))
	}
	for range size {
		await[*messages.Released](s, "")
	}
	s.say("crowd", "%d turns in %v took %d commands to Redis", size, rounded(time.Since(began)), s.redis.sent()-before)
}

// reentry: who has the lock may take it again, and gives it back as often.
func reentry(s *story, here, _ *process) {
	s.act("an actor takes a lock that it has")
	here.clerk("dora", takeTwice)
	s.check(await[*messages.Acquired](s, "dora").GetHoldCount() == 1, "dora has the lock once")
	s.check(await[*messages.Acquired](s, "dora").GetHoldCount() == 2, "dora has the lock twice")
	s.check(await[*messages.Released](s, "dora").GetHoldCount() == 1, "dora has given it back once")
	s.check(await[*messages.Released](s, "dora").GetHoldCount() == 0, "dora has given it back for good")
}

// watchdog: the lease is short, in case the process dies. While it lives, the
// lease is renewed.
func watchdog(s *story, here, _ *process) {
	s.act("an actor works for longer than a renewal takes to come")
	emil := here.clerk("emil", keep)
	await[*messages.Acquired](s, "emil")
	first := here.inspect().GetTtl().AsDuration()
	least, now := first, first
	s.until("the lease is renewed", func() bool {
		now = here.inspect().GetTtl().AsDuration()
		renewed := now > least
		if !renewed {
			least = now
		}
		return renewed
	})
	s.say("redis", "the lease had %v left, then %v, then %v", first, least, now)
	here.root.Send(emil, workDone{})
	await[*messages.Released](s, "emil")
}

// death: who dies lets go, and the next has the lock at once, here in another process.
func death(s *story, here, there *process) {
	s.act("the holder dies, and somebody in another process waits")
	fred := here.clerk("fred", keep)
	await[*messages.Acquired](s, "fred")
	there.clerk("gina", work(time.Millisecond))
	s.until("gina's process listens for the release", func() bool { return here.inspect().GetSubscribers() == 1 })
	s.letGo("fred", "dies")
	here.root.Stop(fred)
	await[*messages.Released](s, "gina")
}

// deleted: a lock can be lost. Its holder is told, and told why.
func deleted(s *story, here, _ *process) {
	s.act("somebody deletes the key in Redis")
	here.clerk("hugo", keep)
	await[*messages.Acquired](s, "hugo")
	s.letGo("redis", "DEL "+key)
	s.try(s.redis.Do(context.Background(), s.redis.B().Del().Key(key).Build()).Error())
	lost := await[*messages.LeaseLost](s, "hugo")
	s.check(lost.GetReason() == messages.Reason_REASON_GONE, "the reason is that the key is gone")
}

// forced: a goroutine is told by its context.
func forced(s *story, here, there *process) {
	s.act("a goroutine has the lock, and another process takes it away by force")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	hold, err := here.locks.Lock(lockName).Acquire(ctx)
	if err != nil {
		s.try(err)
		return
	}
	s.granted("iris", hold.Count())
	s.say("redis", "is told by the other process to free it")
	_, err = there.locks.Lock(lockName).ForceRelease(ctx)
	s.try(err)
	<-hold.Context().Done() // where her work would be
	why := context.Cause(hold.Context())
	s.lost("iris", "has her context cancelled: "+why.Error())
	s.check(errors.Is(why, lockkeeper.ErrLost), "the cause is that the lock was lost")
}
