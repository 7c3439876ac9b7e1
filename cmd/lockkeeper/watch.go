//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const watchHelp = `usage: lockkeeper watch [-redis URL] [-prefix P] [--json] [-every 2s] [NAME …]

Prints the holder of each lock, and then a line whenever the holder or its note changes, until it is
interrupted. With names it reads only these locks; without, all of them, as ls does. It does not
notice a change that is undone between two reads. Of several holders it shows the first. If that has
held the lock for a second or more, it prints the minimum time: from the record of its process, or
since watch has seen it first. While Redis is unavailable it continues, and prints a message on
stderr. If a master of a cluster does not answer, it names the master, and shows the locks on the
others; it prints nothing about locks that it cannot read.

` + accessHelp + `  -every 2s      how often to read

The exit code is 0 after SIGINT and SIGTERM. 64: the command line is wrong. 69: Redis cannot be
reached when it begins, or refuses.

  lockkeeper watch nightly-report
`

// watchOptions are the command line of watch.
type watchOptions struct {
	access
	every time.Duration
	// last contains each lock by its name, as of its last read.
	last map[string]change
	// unserved reports whether the last read failed, at least in part.
	unserved bool
}

func (o *watchOptions) flags() *flag.FlagSet {
	flags := o.access.flags("watch")
	flags.DurationVar(&o.every, "every", 2*time.Second, "")
	return flags
}

// watch runs the subcommand watch.
func watch(args []string, env environment) int {
	o := watchOptions{access: access{environment: env}}
	code, ok := o.parse(o.flags(), args, watchHelp, func() error {
		if o.every < 10*time.Millisecond {
			return errors.New("-every must be at least 10ms")
		}
		return nil
	})
	if !ok {
		return code
	}
	return o.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		tick := time.NewTicker(o.every)
		defer tick.Stop()
		for {
			inspector := inspect.Inspector{Client: client, Prefix: o.prefix}
			all, unknown := o.readLocks(ctx, inspector)
			if ctx.Err() != nil {
				return 0, nil
			}
			if err := o.outage(unknown, len(all) > 0); err != nil {
				for _, name := range o.args {
					err = notALock(ctx, inspector, name, err, "watch is for locks; inspect shows what is free")
				}
				return 0, err
			}
			if err := o.printChanges(all, unknown != nil); err != nil {
				return 0, err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return 0, nil
			}
		}
	})
}

// outage prints the beginning and the end of an outage. It returns any error that is not transient.
func (o *watchOptions) outage(err error, some bool) error {
	var failed *redisio.Error
	what := "Redis is unavailable"
	if some {
		what = "not all locks are seen"
	}
	switch {
	case err == nil && o.unserved:
		fmt.Fprintf(o.stderr, "%s  Redis is available again\n", time.Now().Format(time.TimeOnly))
	case err == nil:
	case !errors.As(err, &failed) || !failed.Transient:
		return err
	case !o.unserved:
		fmt.Fprintf(o.stderr, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), what, shown(err.Error()))
	}
	o.unserved = err != nil
	return nil
}

// readLocks reads the locks. With an error it also returns the locks that it has read, and asks again about held locks
// that the list lacks.
func (o *watchOptions) readLocks(ctx context.Context, inspector inspect.Inspector) (all []inspect.Lock, unknown error) {
	var keys []string
	if len(o.args) == 0 {
		if all, unknown = inspector.List(ctx, "*", math.MaxInt); unknown == nil {
			return all, nil
		}
		for name, before := range o.last {
			if before.Held && !slices.ContainsFunc(all, func(v inspect.Lock) bool { return v.Name == name }) {
				keys = append(keys, o.prefix+name)
			}
		}
	}
	for _, name := range o.args {
		keys = append(keys, o.prefix+name)
	}
	named, err := inspector.Inspect(ctx, keys, true)
	return append(all, named...), cmp.Or(unknown, err, inspector.Identify(ctx, named))
}

// change is a lock whose owners have changed since the last read, with the owners before.
type change struct {
	At time.Time `json:"at"`
	inspect.Lock
	Before []inspect.Owner `json:"before,omitempty"`
}

// printChanges prints the locks that have changed. partly reports that not all locks are known, so that a missing lock
// may still be held.
func (o *watchOptions) printChanges(all []inspect.Lock, partly bool) error {
	at, now := time.Now(), map[string]change{}
	var changed []change
	for _, v := range all {
		before, known := o.last[v.Name]
		before.age(v.Owners, at)
		now[v.Name] = change{at, v, before.Owners}
		if !known && (v.Held || len(o.args) > 0) || holders(v) != holders(before.Lock) {
			changed = append(changed, now[v.Name])
		}
	}
	for name, before := range o.last {
		if _, seen := now[name]; !seen && partly {
			now[name] = before
		} else if !seen && before.Held {
			free := inspect.Lock{Name: name, NameBytes: before.NameBytes, Kind: before.Kind}
			changed = append(changed, change{at, free, before.Owners})
		}
	}
	o.last = now
	slices.SortFunc(changed, func(a, b change) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range changed {
		if o.json {
			if err := o.print(c); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(o.stdout, "%s  %s  %s%s\n", at.Format(time.TimeOnly), shown(c.Name), heldBy(c.Lock), c.before()); err != nil {
			return err
		}
	}
	return nil
}

// age raises the HeldAtLeast of owners that held the lock at the last read, too: to the earlier value plus the time
// since.
func (c *change) age(owners []inspect.Owner, now time.Time) {
	for i := range owners {
		for _, before := range c.Owners {
			held := before.HeldAtLeast.N + now.Sub(c.At).Milliseconds()
			if before.Field == owners[i].Field && held > owners[i].HeldAtLeast.N {
				owners[i].HeldAtLeast = inspect.Known(held)
			}
		}
	}
}

// before describes for how long the first of the earlier owners has held the lock.
func (c change) before() string {
	if len(c.Before) == 0 || !long(c.Before[0].HeldAtLeast) {
		return ""
	}
	return "; it was held for at least " + ttl(c.Before[0].HeldAtLeast.N) + " before"
}

// long reports whether a time is long enough to print: less than a second may be the time between two reads.
func long(ms inspect.Number) bool { return ms.N >= 1000 }

// holders returns a text that identifies the owners of a lock, and their notes.
func holders(v inspect.Lock) string {
	var fields []string
	for _, o := range v.Owners {
		fields = append(fields, o.Mode+o.Field+noted(o.Note))
	}
	return strings.Join(fields, " ")
}

// holder describes the process of the first owner, and how many other owners there are.
func holder(v inspect.Lock) string {
	text := recordOf(v.Owners[0].Process).String() + noted(v.Owners[0].Note)
	if more := int64(len(v.Owners)) - 1 + v.MoreOwners; more > 0 {
		text += fmt.Sprintf(", and by %d more", more)
	}
	return text
}

// heldBy describes on one line the holder of a lock, for how long it has held the lock, and the waiters.
func heldBy(v inspect.Lock) string {
	if !v.Held {
		return "is free"
	}
	text := "is held by " + holder(v)
	if long(v.Owners[0].HeldAtLeast) {
		text += ", for at least " + ttl(v.Owners[0].HeldAtLeast.N)
	}
	if v.Waiters.N+v.HolderWaiters().N > 0 || len(v.Queue) > 0 {
		text += "; waiters: " + waiters(v)
		if longest := v.LongestWait(); longest.Known {
			text += ", the first for " + ttl(longest.N)
		}
	}
	return strings.Join(append([]string{text}, v.Problems...), "; ")
}
