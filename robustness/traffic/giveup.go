package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// Locks that some requests stop waiting for. FirstMember and SecondMember are the members of a MultiLock, and are also
// used alone. Read is held by readers for long, and some requests want to write.
const (
	FirstMember  Kind = "giving-up-x"
	SecondMember Kind = "giving-up-y"
	Read         Kind = "giving-up-read"
)

// giveUp waits for a lock, and gives up: a request for a MultiLock, or for a write lock with readers, or of an actor
// that dies, or of a System that is closed.
func (w *worker) giveUp() {
	one := func(kind Kind) history.Part { return history.Part{Lock: string(kind), Kind: "plain"} }
	switch w.random.IntN(4) {
	case 0:
		both := lockkeeper.MultiLock(w.c.system.Lock(string(FirstMember)), w.c.system.Lock(string(SecondMember)))
		w.once(choice{lock: both, parts: []history.Part{one(FirstMember), one(SecondMember)}})
	case 1:
		w.readBehindAWriter()
	case 2:
		if w.random.IntN(2) == 0 {
			w.die(byMessage(string(Plain), messages.Kind_KIND_PLAIN))
		} else {
			w.die(byMessage(string(Fenced), messages.Kind_KIND_FENCED))
		}
	default:
		w.close()
	}
}

// reading is the lock that readers hold for long.
func reading(s *lockkeeper.System) choice {
	return choice{lock: s.ReadWriteLock(string(Read)).Read(), parts: []history.Part{{Lock: string(Read), Kind: "readwrite", Shared: true}}}
}

// reads reports whether the process holds the lock as a reader.
func (c *client) reads() bool { return c.spec.Proc%2 == 1 }

// read holds the lock as a reader, in every second process.
func (w *worker) read() {
	if w.c.reads() {
		w.once(reading(w.c.system))
	}
}

// readBehindAWriter makes a writer wait for a lock that other processes read, and a reader of its own process wait
// behind it.
func (w *worker) readBehindAWriter() {
	if w.c.reads() {
		return
	}
	behind := *w
	behind.style.GiveUpShare, behind.random = 0, rand.New(rand.NewPCG(w.random.Uint64(), 0))
	var reader sync.WaitGroup
	reader.Go(func() {
		behind.pause(behind.style.GiveUpAfter.Pick(behind.random) / 4)
		behind.once(reading(w.c.system))
	})
	w.once(choice{lock: w.c.system.ReadWriteLock(string(Read)).Write(), parts: []history.Part{{Lock: string(Read), Kind: "readwrite"}}})
	reader.Wait()
}

// die starts an actor that requests a lock, and stops it soon.
func (w *worker) die(what messageLock) {
	received := make(chan any, 4)
	root := w.c.actors.Root
	b := w.requestByMessage(what, messageWait)
	pid := root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &childActor{guardian: w.c.system.Guardian(), lock: what.lock, wait: messageWait, received: received}
	}))
	w.pause(w.style.GiveUpAfter.Pick(w.random))
	_ = root.StopFuture(pid).Wait()
	select {
	case m := <-received:
		if grant, ok := m.(*messages.Acquired); ok {
			b.granted(grant)
			b.note(history.Event{Stage: history.Died})
			return
		}
	default:
	}
	b.note(history.Event{Stage: history.Refused, Err: "owner died"})
}

// close makes a request by another System, and closes the System.
func (w *worker) close() {
	redis, err := lockkeeper.Connect(w.c.spec.Redis)
	if err != nil {
		return
	}
	defer redis.Close()
	s, err := lockkeeper.New(w.c.actors, redis, w.c.plan.Config())
	if err != nil {
		return
	}
	kinds := []Kind{Plain, Fenced, Fair, ReadWrite, SecondMember, Read}
	what := choose(s, kinds[w.random.IntN(len(kinds))], w.random)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		id := w.asking(what.parts, 0, false, messageWait)
		hold, err := what.lock.Acquire(w.r.ctx, lockkeeper.WithWait(messageWait), lockkeeper.WithoutReentry())
		w.answered(id, hold, err)
		if err != nil {
			return
		}
		h := &held{w: w, id: id, lock: what, hold: hold}
		h.look()
		if err := h.release(); errors.Is(err, lockkeeper.ErrLost) && !h.invalid {
			h.awaitLoss() // the System was closed after the look: only the notification says so
		}
	}()
	w.pause(w.style.GiveUpAfter.Pick(w.random))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	since := history.Now()
	_ = s.Close(ctx) // a failed release shows in the history
	w.called("close", 0, since, w.c.plan.CallTimeout+time.Second)
	<-ended
}
