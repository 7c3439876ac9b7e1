package core_test

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// Clients of another kind, which do as Redisson does.

// strangers are all clients from this number on.
const strangers = 1000

func (w *world) stranger() model.Owner {
	w.foreign++
	return model.Owner{Client: model.Client(strangers + w.foreign), Term: 1}
}

// holdForeign lets a client of another kind take the lock if it is free: of a lock with
// parts, one of them; of a read/write lock, as a reader or as a writer.
func (w *world) holdForeign(o model.Owner, hold, lease time.Duration, forget bool) bool {
	r := w.redis
	r.expire()
	part, mode := w.tape.pick(len(r.Parts())), core.Exclusive
	if w.kind.Shares && w.tape.pick(2) == 1 {
		mode = core.Shared
	}
	if !w.foreignly(func() bool { return r.Seize(part, o, mode, lease) }) {
		return false
	}
	w.logf("stranger %s holds the lock", o)
	if !forget {
		w.after(hold, func() { w.releaseForeign(part, o) })
	}
	return true
}

// foreignly lets a stranger do something to the queue of a fair lock.
func (w *world) foreignly(do func() bool) bool {
	before := w.redis.Clone()
	did := do()
	w.redis.watchQueue(&before, func(model.Owner) bool { return false })
	return did
}

func (w *world) releaseForeign(part int, o model.Owner) {
	r := w.redis
	r.expire()
	if r.Part(part).Of(o) == (model.Counts{}) {
		return
	}
	w.logf("stranger %s releases the lock", o)
	var told []model.Publication
	w.foreignly(func() bool {
		told = r.Leave(part, o)
		return true
	})
	r.tell(told)
}

// waitForeign lets a client of another kind wait for the lock.
func (w *world) waitForeign(hold time.Duration) {
	r, o := w.redis, w.stranger()
	var channel model.Owner
	if w.kind.Queued {
		channel = o
	}
	done := false
	try := func() {
		if done {
			return
		}
		if w.holdForeign(o, hold, 10*sec, false) {
			done = true
			r.Unsubscribe(o.Client, channel)
			return
		}
		if w.kind.Queued {
			w.foreignly(func() bool {
				r.Queue(0, o)
				return true
			})
		}
	}
	w.logf("stranger %s waits for the lock", o)
	r.heard[o.Client] = func() { w.after(w.latency(), try) }
	r.Subscribe(o.Client, channel)
	var poll func()
	poll = func() {
		if try(); !done {
			r.Subscribe(o.Client, channel) // Redis may have crashed
			w.after(sec, poll)
		}
	}
	poll()
}
