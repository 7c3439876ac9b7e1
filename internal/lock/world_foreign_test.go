package lock_test

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// Clients of another kind, which do as Redisson does.

// foreignClients are all clients from this number on.
const foreignClients = 1000

type foreignClient struct {
	part    int
	mode    lock.Mode
	hold    time.Duration // 0: it forgets to give the lock back
	lease   time.Duration
	waiting bool
}

// What a foreign client does next.
const (
	tries uint64 = iota
	polls
	leaves
)

// visit lets a foreign client take the lock if it is free, or wait for it: of a lock with parts, one
// of them.
func (w *world) addForeign(s foreignClient) {
	w.foreign = append(w.foreign, s)
	w.stepForeign(len(w.foreign)-1, polls)
}

// meet lets a foreign client do something.
func (w *world) stepForeign(i int, does uint64) {
	s, o := &w.foreign[i], redismodel.Owner{Client: foreignClients + redismodel.Client(i), Term: 1}
	var channel redismodel.Owner
	if w.kind.Queued {
		channel = o
	}
	later := func(does uint64, after time.Duration) {
		w.send(message{kind: foreignStep, p: i, term: does, at: w.now + after})
	}
	before := w.redis
	var told []redismodel.Publication
	switch {
	case does == leaves:
		told = w.redis.Leave(s.part, o)
	case s.lease == 0: // it has had the lock
	case w.redis.Seize(s.part, o, s.mode, s.lease):
		w.logf("foreign client %v holds the lock", o)
		w.redis.Unsubscribe(o.Client, channel)
		if s.lease = 0; s.hold > 0 {
			later(leaves, s.hold)
		}
	case !s.waiting:
		s.lease = 0
	default:
		w.redis.Subscribe(o.Client, channel) // again, since Redis may have crashed
		if w.kind.Queued {
			w.redis.Queue(0, o)
		}
		if does == polls {
			later(polls, sec)
		}
	}
	w.watchQueue(&before, func(redismodel.Owner) bool { return false })
	w.publish(told)
}
