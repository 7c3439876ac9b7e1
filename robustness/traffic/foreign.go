package traffic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// foreignAge is how long a name is in use that may become another application's key.
const foreignAge = 3 * time.Second

// ForeignFields are the fields of another application's hash, which no text may disclose. The hash may have another
// field in Lockkeeper's form.
var ForeignFields = map[string]string{"password": "hunter2", "email": "jane@example.com"}

// ForeignKinds are the kinds whose names may be another application's keys.
var ForeignKinds = []Kind{Plain, Fenced, Fair, ReadWrite, Multi, Actor, Expirable, Semaphore, Latch}

// ForeignName is the current name of a kind.
func ForeignName(kind Kind) string {
	return fmt.Sprintf("%s-%s-%d", Foreign, kind, history.Now()/foreignAge)
}

// atForeign makes a request by a name that may be another application's key.
func (w *worker) atForeign() {
	kind := ForeignKinds[w.random.IntN(len(ForeignKinds))]
	name, s := ForeignName(kind), w.c.system
	var lock *lockkeeper.Lock
	switch kind {
	case Semaphore:
		w.atName(name, "", func() error { return s.Semaphore(name).Acquire(w.r.ctx, 1, lockkeeper.WithWait(foreignWait)) })
		return
	case Latch:
		w.atName(name, "", func() error { return s.Latch(name).Wait(w.r.ctx, lockkeeper.WithWait(foreignWait)) })
		return
	case Expirable:
		w.atName(name, "", func() error {
			permit, err := s.ExpirableSemaphore(name).Acquire(w.r.ctx, lockkeeper.WithWait(foreignWait))
			if err == nil {
				_ = permit.Release(context.Background())
			}
			return err
		})
		return
	case Actor:
		w.atName(name, "", func() error { return w.byFuture(name) })
		return
	case Fenced:
		lock = s.FencedLock(name)
	case Fair:
		lock = s.FairLock(name)
	case ReadWrite:
		if lock = s.ReadWriteLock(name).Read(); w.random.IntN(2) == 0 {
			lock = s.ReadWriteLock(name).Write()
		}
	case Multi:
		lock = lockkeeper.MultiLock(s.Lock(name), s.Lock(name+"-member"))
	default:
		lock = s.Lock(name)
	}
	if what := w.random.IntN(8); kind != Multi && what == 0 {
		w.atName(name, history.Force, func() error {
			was, err := lock.ForceRelease(w.r.ctx)
			if err == nil && !was {
				err = errors.New("was free")
			}
			return err
		})
		return
	} else if kind != Multi && what == 1 {
		w.atName(name, history.Inspect, func() error {
			status, err := lock.Inspect(w.r.ctx)
			if err == nil && discloses(fmt.Sprint(status)) {
				err = errors.New(fmt.Sprint(status))
			}
			return err
		})
		return
	}
	w.atName(name, "", func() error {
		hold, err := lock.Acquire(w.r.ctx, lockkeeper.WithWait(foreignWait))
		if err == nil {
			_ = hold.Release(context.Background())
		}
		return err
	})
}

// foreignWait is how long a request waits if it mistakes another application's key for a held lock.
const foreignWait = 2 * time.Second

// byFuture acquires and releases a plain lock by futures.
func (w *worker) byFuture(name string) error {
	lock := byMessage(name, messages.Kind_KIND_PLAIN).lock
	ask := func(m any) any {
		answer, err := w.c.actors.Root.RequestFuture(w.c.system.Guardian(), m, timeout).Result()
		if err != nil {
			return err
		}
		return answer
	}
	switch m := ask(&messages.Acquire{Lock: lock, Wait: durationpb.New(foreignWait), Lease: durationpb.New(w.c.plan.Watchdog)}).(type) {
	case error:
		return m
	case *messages.NotAcquired:
		if discloses(m.Detail) {
			return errors.New(m.Detail)
		}
		return errors.New(named(m.Reason))
	case *messages.Acquired:
		ask(&messages.Release{Lock: lock, HoldId: m.HoldId})
	}
	return nil
}

// atName makes a request by a name, and records its result.
func (w *worker) atName(name, action string, do func() error) {
	id := w.asking([]history.Part{{Lock: name, Kind: string(Foreign), Action: action}}, 0, false, 0)
	err := do()
	if err == nil || !discloses(err.Error()) {
		w.granted(id, err)
		return
	}
	w.r.out.Add(history.Event{Stage: history.Refused, At: history.Now(), ID: id, Err: history.Discloses + err.Error()})
}

// discloses reports whether a text contains data of another application's hash.
func discloses(text string) bool {
	for field, value := range ForeignFields {
		if strings.Contains(text, field) || strings.Contains(text, value) {
			return true
		}
	}
	return false
}
