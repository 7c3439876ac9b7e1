package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"google.golang.org/protobuf/proto"
)

// patience is how long anything may take before the story has gone wrong.
const patience = 10 * time.Second

// story tells what happens, and lets the acts wait for it. After the first thing
// that goes wrong nothing is told or awaited any more.
type story struct {
	redis *counted
	began time.Time
	// heard is what the clerks are sent; unawaited is what no act has waited for yet.
	heard     chan event
	unawaited []event

	mu     sync.Mutex // guards what follows
	out    io.Writer
	freed  time.Time // when the lock was let go of last
	grants int
	losses int
	wrong  error
}

// event is a message that somebody was sent.
type event struct {
	who  string
	what proto.Message
}

func newStory(out io.Writer, redis rueidis.Client) *story {
	return &story{redis: &counted{Client: redis}, out: out, began: time.Now(), heard: make(chan event, 10_000)}
}

// act begins a part of the story.
func (s *story) act(title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = time.Time{}
	if s.wrong == nil {
		fmt.Fprintf(s.out, "\n%11s%s:\n", "", title)
	}
}

// say tells something, unless it is of somebody without a name.
func (s *story) say(who, format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(who, fmt.Sprintf(format, values...))
}

func (s *story) tell(who, what string) {
	if who != "" && s.wrong == nil {
		fmt.Fprintf(s.out, "%6d ms  %-6s  %s\n", time.Since(s.began).Milliseconds(), who, what)
	}
}

// granted: somebody has the lock, for the first or another time.
func (s *story) granted(who string, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants++
	switch {
	case count > 1:
		s.tell(who, fmt.Sprintf("has it %d times", count))
	case s.freed.IsZero():
		s.tell(who, "has it")
	default:
		s.tell(who, fmt.Sprintf("has it, %v later", rounded(time.Since(s.freed))))
	}
}

// letGo: somebody does what should make the lock free.
func (s *story) letGo(who, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(who, how)
	s.freed = time.Now()
}

// lost: somebody was told that the lock is lost.
func (s *story) lost(who, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(who, how)
	s.losses++
}

// try notes what went wrong first.
func (s *story) try(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wrong == nil {
		s.wrong = err
	}
}

// check notes a promise that was not kept.
func (s *story) check(kept bool, promise string) {
	if !kept {
		s.try(fmt.Errorf("it is not true that %s", promise))
	}
}

func (s *story) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// await waits until somebody was sent a message of type M, and gives it.
func await[M proto.Message](s *story, who string) (m M) {
	tooLong := time.After(patience)
	for i := 0; s.err() == nil; i++ {
		if i == len(s.unawaited) {
			select {
			case e := <-s.heard:
				s.unawaited = append(s.unawaited, e)
			case <-tooLong:
				s.try(fmt.Errorf("%q was sent no %T within %v", who, m, patience))
				return m
			}
		}
		if found, ok := s.unawaited[i].what.(M); ok && s.unawaited[i].who == who {
			s.unawaited = append(s.unawaited[:i], s.unawaited[i+1:]...)
			return found
		}
	}
	return m
}

// until waits for a condition that nobody tells of.
func (s *story) until(what string, met func() bool) {
	for tooLate := time.Now().Add(patience); !met() && s.err() == nil; time.Sleep(25 * time.Millisecond) {
		if time.Now().After(tooLate) {
			s.try(fmt.Errorf("it took more than %v until %s", patience, what))
		}
	}
}

// finish sums up.
func (s *story) finish() error {
	left, err := s.redis.Do(context.Background(), s.redis.B().Exists().Key(key).Build()).AsInt64()
	s.try(err)
	s.check(left == 0, "nothing is left in Redis")
	s.act("and that is all")
	s.say("in all", "%d grants, %d losses that were told, %d commands to Redis", s.grants, s.losses, s.redis.sent())
	return s.err()
}

func rounded(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// counted is a client that counts the commands it sends.
type counted struct {
	rueidis.Client
	n atomic.Int64
}

func (c *counted) sent() int64 { return c.n.Load() }

func (c *counted) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	c.n.Add(1)
	return c.Client.Do(ctx, command)
}

func (c *counted) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	c.n.Add(int64(len(commands)))
	return c.Client.DoMulti(ctx, commands...)
}
