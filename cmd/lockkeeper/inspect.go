//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const inspectHelp = `usage: lockkeeper inspect [-redis URL] [-prefix P] [--json] NAME

Shows which process holds a lock: the owner field in Redis, and the application, host, process id and
start time of the process, from the record of its System. The record remains for a while after that
process was killed. An owner without a record is a Redisson client, a System that keeps none, or one
that was closed while a minimum time (WithAtLeast) keeps the lock. The record also says for how long at
least the process has held the lock, and has the note of WithNote.

For a semaphore, an expirable semaphore and a latch it shows the count; for an expirable semaphore,
also the taken permits, the rest of their leases, and the process that holds each, if it has a record;
of more than 1000 only those that end first. Without waiters and taken permits, the three look the same,
unless a latch was counted down by id.

Waiters are processes that are subscribed to the release; for a fair lock, the entries of its queue. Only the
process that holds the lock knows how many requests wait in it. It writes the number to its record, every few
seconds, for at most 40 locks; otherwise the number is unknown.

` + accessHelp + `
The exit code is 0 if the lock is held, or the name is that of a semaphore or a latch, and 1 if the lock is free.
64: the command line is wrong. 69: Redis cannot be reached, or refuses, or the key is of another type.

  lockkeeper inspect nightly-report
  lockkeeper inspect --json nightly-report | jq '.owners[0].process.pid'
`

// runInspect runs the subcommand inspect.
func runInspect(args []string, env environment) int {
	a := access{environment: env}
	if code, ok := a.parse(a.flags("inspect"), args, inspectHelp, a.oneName); !ok {
		return code
	}
	return a.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		inspector := inspect.Inspector{Client: client, Prefix: a.prefix}
		v, err := one(ctx, inspector, a.args[0])
		if err != nil {
			c, problem := inspector.Counter(ctx, a.args[0])
			var refused *redisio.Error
			switch {
			case c != nil:
				return 0, a.printCounter(c)
			case problem != nil && errors.As(err, &refused) && refusal.WrongType(refused.Err.Error()):
				return 0, problem
			}
			return 0, err
		}
		code := 0
		if !v.Held {
			code = exitNo
			if c, _ := inspector.Counter(ctx, a.args[0]); c != nil { // without the rights for a counter, a free lock is assumed
				return 0, a.printCounter(c)
			}
		}
		if a.json {
			return code, a.print(v)
		}
		fmt.Fprint(a.stdout, text(v))
		return code, nil
	})
}

// one reads the lock of that name.
func one(ctx context.Context, inspector inspect.Inspector, name string) (inspect.Lock, error) {
	views, err := inspector.Inspect(ctx, []string{inspector.Prefix + name}, true)
	if err != nil {
		return inspect.Lock{}, err
	}
	return views[0], inspector.Identify(ctx, views)
}

// text describes a lock in several lines.
func text(v inspect.Lock) string {
	var b strings.Builder
	line := func(what string, value any) { fmt.Fprintf(&b, "%-9s%v\n", what, value) }
	line("lock", shown(v.Name))
	if v.Held {
		line("kind", v.Kind)
	} else {
		line("state", "free, if it is a lock; a semaphore of that name has no number of permits")
	}
	for _, o := range v.Owners {
		has := shown(o.Field)
		if o.Count != inspect.Known(1) || o.Mode != "" {
			has += fmt.Sprintf(" (%s%v times)", strings.TrimLeft(o.Mode+" ", " "), o.Count)
		}
		line("owner", has)
		by := recordOf(o.Process)
		if by.Known() && !by.Overdue {
			line("held by", fmt.Sprintf("%v, seen %v ago", by, by.Seen.Round(time.Second)))
		} else {
			line("held by", by)
		}
		if o.Note != "" {
			line("note", printable.Quote(o.Note))
		}
		switch {
		case o.Outlasted():
			line("", "its work has ended; a minimum time keeps the lock, so that the job does not run twice")
		case o.HeldAtLeast.Known:
			line("", "for at least "+ttl(o.HeldAtLeast.N))
		default:
			line("", "for an unknown time")
		}
	}
	if v.MoreOwners > 0 {
		line("", moreOwners(v))
	}
	if v.Held {
		line("ttl", ttl(v.TTL))
	}
	if v.Token > 0 {
		line("token", v.Token)
	}
	line("waiters", allWaiters(v))
	for i, w := range v.Queue {
		waits := ", waiting for an unknown time"
		if w.Waiting.Known {
			waits = ", waiting for " + ttl(w.Waiting.N)
		}
		line("", fmt.Sprintf("%d. %v%s", i+1, recordOf(w.Process), waits))
	}
	if more := v.Waiters.N - int64(len(v.Queue)); v.Kind == inspect.KindFair && more > 0 {
		line("", fmt.Sprintf("and %d more", more))
	}
	for _, problem := range v.Problems {
		line("problem", problem)
	}
	return b.String()
}

// allWaiters describes how many requests wait, also in the process that holds the lock.
func allWaiters(v inspect.Lock) string {
	text := v.Waiters.String()
	if !v.Waiters.Known {
		text = "unknown"
	}
	if !v.Held || v.Kind == inspect.KindFair {
		return text
	}
	in := "in the process that holds it"
	if len(v.Owners) > 1 {
		in = "in the processes that hold it"
	}
	n := v.HolderWaiters()
	if !n.Known {
		return text + ", and an unknown number " + in
	}
	seen := int64(0)
	for _, o := range v.Owners {
		seen = max(seen, o.Process.Seen)
	}
	return fmt.Sprintf("%s, and %v %s, as of %v ago", text, n, in, time.Duration(seen/1000)*time.Second)
}

// printCounter prints a semaphore or a latch.
func (a *access) printCounter(c *inspect.Counter) error {
	if a.json {
		return a.print(c)
	}
	line := func(what string, value any) { fmt.Fprintf(a.stdout, "%-9s%v\n", what, value) }
	line("name", shown(c.Name))
	line("kind", c.Kind)
	what := "free"
	if c.Kind == inspect.KindLatch || c.Kind == inspect.KindCounter {
		what = "count"
	}
	if c.Count.Known {
		line(what, c.Count)
	} else {
		line(what, "unknown")
	}
	if c.Kind == inspect.KindExpirableSemaphore {
		line("taken", c.Taken)
	}
	for _, p := range c.Permits {
		line("permit", p.ID+", lease left: "+ttl(p.Left))
		if p.Process != nil {
			line("", "held by "+recordOf(*p.Process).String()+noted(p.Note))
		}
	}
	if more := c.Taken - int64(len(c.Permits)); more > 0 {
		line("", fmt.Sprintf("and %d more", more))
	}
	line("ttl", ttl(c.TTL))
	line("waiters", c.Waiters)
	if c.Problem != "" {
		line("problem", c.Problem)
	}
	return nil
}
