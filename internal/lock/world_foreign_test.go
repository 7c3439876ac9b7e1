package lock_test

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// Foreign clients, which behave like Redisson.

// foreignClients is the number of the first foreign client; all higher numbers are foreign too.
const foreignClients = 1000

type foreignClient struct {
	part    int
	mode    machine.Mode
	hold    time.Duration // 0: it does not release the lock
	lease   time.Duration
	waiting bool
}

// The steps of a foreign client.
const (
	tries uint64 = iota
	polls
	leaves
)

// addForeign adds a foreign client, which takes the lock, or one part of it, if that is free, or waits for it.
func (w *world) addForeign(c foreignClient) {
	w.foreign = append(w.foreign, c)
	w.stepForeign(len(w.foreign)-1, polls)
}

// stepForeign carries out a step of a foreign client.
func (w *world) stepForeign(i int, step uint64) {
	c, o := &w.foreign[i], redismodel.Owner{Client: foreignClients + redismodel.Client(i), Term: 1}
	var channel redismodel.Owner
	if w.features.Fair {
		channel = o
	}
	later := func(step uint64, after time.Duration) {
		w.send(message{kind: foreignStep, p: i, term: step, at: w.now + after})
	}
	before := w.redis
	var published []redismodel.Publication
	switch {
	case step == leaves:
		published = w.redis.Leave(c.part, o)
	case c.lease == 0: // it has had the lock
	case w.redis.Seize(c.part, o, c.mode, c.lease):
		w.logf("foreign client %v holds the lock", o)
		w.redis.Unsubscribe(o.Client, channel)
		if c.lease = 0; c.hold > 0 {
			later(leaves, c.hold)
		}
	case !c.waiting:
		c.lease = 0
	default:
		w.redis.Subscribe(o.Client, channel) // again, since Redis may have crashed
		if w.features.Fair {
			w.redis.Queue(0, o)
		}
		if step == polls {
			later(polls, sec)
		}
	}
	w.watchQueue(&before, func(redismodel.Owner) bool { return false })
	w.publish(published)
}
