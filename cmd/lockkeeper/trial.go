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
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const (
	// trialTime bounds the trial of one kind, and laterTime those that follow one that took so long.
	trialTime = 5 * time.Second
	laterTime = time.Second
	// trialLease is that of what is taken. Nothing ends or polls by itself during a trial, so who waits
	// is woken by a message or not at all.
	trialLease, trialPoll = 30 * time.Second, time.Minute
	// subscribeTime is how long the other System may take to be seen waiting; after that it waits
	// without being seen.
	subscribeTime = time.Second
)

// trial is a kind that doctor tries: something is handed over from one System to another.
type trial struct {
	kind string
	// take takes it, and returns how it is given back.
	take func(ctx context.Context) (giveBack func(context.Context) error, err error)
	// wait waits in the other System until that has it, and gives it back.
	wait func(ctx context.Context) error
	// waits reports whether Redis knows that the other System waits.
	waits func(ctx context.Context) bool
	// keys are those that stay, and lasting those of them without a TTL.
	keys, lasting []string
}

// checkScripts tries a script that looks at a key beside the one that it declares, as those of locks do.
func (d *doctor) checkScripts(ctx context.Context) {
	const check = "undeclared keys"
	key := d.prefix + "lockkeeper_doctor"
	script := d.client.B().Eval().Script("return redis.call('EXISTS', ARGV[1])").Numkeys(1).Key(key).Arg(redisio.WaitQueue(key)).Build()
	err := redisio.Sort(d.client.Do(ctx, script).Error())
	switch {
	case err == nil:
		d.add(check, isOK, "scripts may use them", "")
	case err.Transient || strings.Contains(err.Error(), "ACL user"):
		d.add(check, isUnknown, err.Error(), "a script with EXISTS lets doctor see whether scripts may use keys that they do not declare")
	default:
		d.add(check, isFailure, err.Error(), "locks need it; docs/topologies.md says which servers have an option for it, such as Dragonfly's --default_lua_flags=allow-undeclared-keys")
	}
}

// checkLocks tries each kind: one System takes it, another waits for it, and the first gives it back.
// As this user, that needs all scripts, keys and channels of the kind, and that messages arrive.
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
			_ = systems[i].Close(ctx) // what is left expires soon
		}()
	}
	limit := trialTime
	for _, t := range d.trials(systems[0], systems[1]) {
		began := time.Now()
		err := t.run(ctx, limit)
		if time.Since(began) > laterTime {
			limit = laterTime
		}
		err = cmp.Or(err, d.clean(ctx, t))
		heard := log.take()
		switch {
		case errors.Is(err, errNotWoken):
			d.add(t.kind, isFailure, strings.TrimSuffix(err.Error()+": "+heard, ": "),
				"messages do not arrive, so waits depend on Config.Poll, and other processes overtake: does a proxy end connections that subscribe?")
		case err != nil:
			d.add(t.kind, isFailure, strings.TrimPrefix(err.Error(), "lockkeeper: "), cmp.Or(lacking(err.Error()), heard))
		case heard != "":
			d.add(t.kind, isWarning, "works, but: "+heard, cmp.Or(lacking(heard), "docs/acl.md lists what the ACL user needs"))
		default:
			d.add(t.kind, isOK, "works", "")
		}
	}
}

// clean deletes what a trial has left in Redis. What has a TTL may stay until that ends.
func (d *doctor) clean(ctx context.Context, t trial) (err error) {
	l := inspect.Inspector{Client: d.client, Prefix: d.prefix}
	for _, key := range t.lasting {
		err = cmp.Or(err, d.client.Do(ctx, l.Command("DEL", key)).Error())
	}
	for _, key := range t.keys {
		_ = d.client.Do(ctx, l.Command("DEL", key)).Error()
	}
	return err
}

// errNotWoken is that nothing has told the other System that it can have what it waits for.
var errNotWoken = errors.New("the System that waits was not woken")

// run hands over what is tried.
func (t trial) run(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	giveBack, err := t.take(ctx)
	if err != nil {
		return err
	}
	waited := make(chan error, 1)
	go func() { waited <- t.wait(ctx) }()
	seen := 0 // more than once: when it is first seen, it may be about to try again
	for end := time.Now().Add(min(subscribeTime, limit/3)); seen < 3 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if t.waits(ctx) {
			seen++
		}
	}
	gave, got := giveBack(ctx), <-waited
	if gave == nil && ctx.Err() != nil && errors.Is(got, context.DeadlineExceeded) {
		return fmt.Errorf("%w within %v", errNotWoken, limit)
	}
	return cmp.Or(gave, got)
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
