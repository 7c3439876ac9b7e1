//go:build unix

package main

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/look"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// trialTime bounds the trial of one kind.
const trialTime = 5 * time.Second

// trials are the kinds that doctor takes, in that order.
var trials = []string{defaultKind, fencedKind, "fair", "write", "read"}

// checkLocks takes a lock of each kind in one System while another System waits for it: as this
// user, that needs all scripts, keys and channels of the kind.
func (d *doctor) checkLocks(ctx context.Context) {
	log := &warnings{}
	var systems [2]*lockkeeper.System
	for i := range systems {
		var err error
		systems[i], err = lockkeeper.Open(ctx, d.redis, lockkeeper.WithConfig(lockkeeper.Config{
			KeyPrefix: d.prefix, Application: "lockkeeper doctor", Anonymous: i > 0, Watchdog: trialTime, Logger: slog.New(log),
		}))
		if err != nil {
			d.add("locks", isFailure, err.Error(), "")
			return
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
			defer cancel()
			_ = systems[i].Close(ctx) // what is left expires soon
		}()
	}
	for _, kind := range trials {
		name := "lockkeeper_doctor:" + systems[0].ID() + ":" + kind
		err := try(ctx, kinds[kind](systems[0], name), kinds[kind](systems[1], name))
		if kind == fencedKind { // its counter has no TTL
			l := look.Looker{Client: d.client, Prefix: d.prefix}
			err = cmp.Or(err, d.client.Do(ctx, l.Command("DEL", redisio.Token(d.prefix+name))).Error())
		}
		heard := log.take()
		switch {
		case err != nil:
			d.add(kind+" lock", isFailure, strings.TrimPrefix(err.Error(), "lockkeeper: "), cmp.Or(lacking(err.Error()), heard))
		case heard != "":
			d.add(kind+" lock", isWarning, "works, but: "+heard, cmp.Or(lacking(heard), "docs/acl.md lists what the ACL user needs"))
		default:
			d.add(kind+" lock", isOK, "works", "")
		}
	}
}

// try takes a lock, has another System wait for it, and releases it.
func try(ctx context.Context, here, there *lockkeeper.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	first, err := here.TryAcquire(ctx)
	if err != nil {
		return err
	}
	second := make(chan error, 1)
	go func() {
		hold, err := there.Acquire(ctx)
		if err == nil {
			err = hold.Release(ctx)
		}
		second <- err
	}()
	for end := time.Now().Add(subscribeTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, err := there.Inspect(ctx)
		if err != nil || status.Shared || status.Waiters > 0 && status.Subscribers > 0 {
			break
		}
	}
	ensured, released, passed := first.Ensure(ctx, trialTime*4/5), first.Release(ctx), <-second
	return cmp.Or(ensured, released, passed)
}

// subscribeTime is how long the other System may take to be seen waiting; after that it waits
// without being seen.
const subscribeTime = 300 * time.Millisecond

// warnings is a log handler that keeps the warnings until they are taken.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.String()
		}
		return true
	})
	w.text = append(w.text, text)
	return nil
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.text, "; ")
	w.text = nil
	return text
}
