//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const (
	// trialTime bounds the commands of the trial of one kind, and the time after the release until the waiting System is
	// woken.
	trialTime = 5 * time.Second
	// laterTime takes the place of trialTime after a trial in which the System was not woken.
	laterTime = time.Second
	// trialLease is the lease of a trial. It does not end during a trial.
	trialLease = 30 * time.Second
	// trialPoll is the Poll of a trial. No waiter polls during a trial, so only a message can wake the waiter.
	trialPoll = time.Minute
	// subscribeTime is the time that doctor waits until Redis knows that the other System waits; after that the trial
	// continues anyway.
	subscribeTime = time.Second
)

// trial is a test of one kind: one System releases a lock or a permit, and another System that waits gets it.
type trial struct {
	kind string
	// acquire acquires the lock or the permit, and returns the function that releases it.
	acquire func(ctx context.Context) (giveBack func(context.Context) error, err error)
	// wait acquires the lock or the permit in the other System, and releases it.
	wait func(ctx context.Context) error
	// waits reports whether Redis knows that the other System waits.
	waits func(ctx context.Context) bool
	// keys are the keys that remain and have a TTL.
	keys []string
	// lasting are the keys that remain and have no TTL.
	lasting []string
}

// checkScripts runs a script that reads a key which it does not declare, as the scripts of locks do.
func (d *doctor) checkScripts(ctx context.Context) {
	const check = "undeclared keys"
	key := d.prefix + "lockkeeper_doctor"
	script := d.client.B().Eval().Script("return redis.call('EXISTS', ARGV[1])").Numkeys(1).Key(key).Arg(keyspace.WaitQueue(key)).Build()
	err := redisio.Classify(d.client.Do(ctx, script).Error())
	switch {
	case err == nil:
		d.add(check, isOK, "scripts may use them", "")
	case err.Transient || strings.Contains(err.Hint, "ACL user"):
		d.add(check, isUnknown, err.Error(),
			"with a script that calls EXISTS, doctor checks whether scripts may use keys that they do not declare")
	default:
		d.add(check, isFailure, err.Error(),
			"locks need it; docs/topologies.md lists servers with an option for it, "+
				"such as Dragonfly's --default_lua_flags=allow-undeclared-keys")
	}
}

// checkLocks tries each kind: one System acquires a lock, another System waits for it, and the first releases it. This
// tests the user's rights to all scripts, keys and channels of the kind, and the delivery of messages.
func (d *doctor) checkLocks(ctx context.Context) {
	log := &warnings{}
	var systems [2]*lockkeeper.System
	for i := range systems {
		var err error
		systems[i], err = lockkeeper.Open(ctx, d.redis, lockkeeper.WithConfig(lockkeeper.Config{
			KeyPrefix: d.prefix, Application: "lockkeeper doctor", Anonymous: i > 0, Watchdog: trialLease, Poll: trialPoll, Logger: slog.New(log),
		}))
		if err != nil {
			d.add("locks", isFailure, err.Error(), "")
			return
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
			defer cancel()
			_ = systems[i].Close(ctx) // remaining keys expire soon
		}()
	}
	limit := trialTime
	for _, t := range d.trials(systems[0], systems[1]) {
		err := t.run(ctx, limit)
		if errors.Is(err, errNotWoken) {
			limit = laterTime
		}
		err = cmp.Or(err, d.clean(ctx, t))
		warned := log.take()
		switch {
		case errors.Is(err, errNotWoken):
			d.add(t.kind, isFailure, strings.TrimSuffix(err.Error()+": "+warned, ": "),
				"messages do not arrive, so waits depend on Config.Poll, and other processes overtake: does a proxy close connections that subscribe?")
		case err != nil:
			d.add(t.kind, isFailure, strings.TrimPrefix(err.Error(), "lockkeeper: "), cmp.Or(lacking(err.Error()), warned))
		case warned != "":
			d.add(t.kind, isWarning, "works, but: "+warned, cmp.Or(lacking(warned), "docs/acl.md lists what the ACL user needs"))
		default:
			d.add(t.kind, isOK, "works", "")
		}
	}
}

// clean deletes the keys that a trial has left in Redis, also at an interrupt. Only keys without a TTL must be deleted.
func (d *doctor) clean(ctx context.Context, t trial) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
	defer cancel()
	inspector := inspect.Inspector{Client: d.client, Prefix: d.prefix}
	for _, key := range t.lasting {
		err = cmp.Or(err, d.client.Do(ctx, inspector.Command("DEL", key)).Error())
	}
	for _, key := range t.keys {
		_ = d.client.Do(ctx, inspector.Command("DEL", key)).Error()
	}
	return err
}

// errNotWoken: the other System was not notified of the release.
var errNotWoken = errors.New("the System that waits was not woken")

// run runs the trial. limit is how long after the release the other System may be woken.
func (t trial) run(ctx context.Context, limit time.Duration) error {
	commands, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	giveBack, err := t.acquire(commands)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	waited := make(chan error, 1)
	go func() { waited <- t.wait(ctx) }()
	seen := 0 // several times: at first the waiter may still be about to try again
	for end := time.Now().Add(min(subscribeTime, limit/3)); seen < 3 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if t.waits(commands) {
			seen++
		}
	}
	if err := giveBack(commands); err != nil {
		stop(nil)
		<-waited
		return err
	}
	late := fmt.Errorf("%w within %v", errNotWoken, limit)
	defer time.AfterFunc(limit, func() { stop(late) }).Stop()
	if err := <-waited; !errors.Is(err, late) {
		return err
	}
	return late
}

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
