//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

const listHelp = `usage: lockkeeper ls [-redis URL] [-prefix P] [--json] [-systems] [PATTERN]

Lists the locks that are held, of any kind, by Lockkeeper or Redisson, and the process that
holds each. The PATTERN is one of Redis: orders:*. To find them, ls scans all keys, some 500 at a
time, in one SCAN of each master; without a PATTERN in two. It changes nothing. A RedLock
is listed on each of its servers.

Below them are semaphores, expirable semaphores and latches: how many permits are free, or how many
count-downs remain, and how many expirable permits are taken. In Redis they are numbers like many
other keys. So ls finds only those with taken expirable permits, those with waiters, and those
that Lockkeeper's processes have used within an hour, but not shortly before they closed their
Systems; inspect shows the others, too. If the user lacks rights for these, ls prints a warning on
stderr, and lists only the locks, or some of these. It also prints on stderr how many keys Redis
refuses to read, and names one of them.

` + accessHelp + `  -systems       list the processes of all Systems instead; this reads only their records

The kind is derived from the data in Redis: a fair lock without waiters looks like a plain one.
WAITERS are the clients that are subscribed to the release, or the length of a fair lock's queue;
in a cluster some are not seen, and Systems that watch the lock are among them. 2+3 is two, and
three requests in the process that holds the lock. Redis does not know these: that process wrote
them to its record some seconds ago, and the note that follows the holder. HELD is the
minimum time for which the process has held the lock, from its record, and WAITED is the longest
wait that Redis knows. "?" is unknown: a record has at most 40 locks, and is written every few
seconds; Java's clients have none. "up since" is the start of a process. A System that is overdue,
"not seen for" a time, is dead, hangs, or cannot reach Redis.

The exit code is 0, also if there are no locks. 64: the command line is wrong. 69: Redis cannot
be reached, or refuses. If some servers of a cluster do not answer, ls lists the locks on the
others, names those servers on stderr, and exits with 69.

With --json all of these are objects of one stream. null is unknown; problem or problems describe
invalid data in Redis. kind is "plain", "fenced", "fair" or "read_write" for a lock, otherwise
"semaphore", "expirable_semaphore", "latch", or if these look the same, "semaphore,
expirable_semaphore, or latch" or "semaphore, or expirable_semaphore". Only locks have owners.

  lockkeeper ls
  lockkeeper ls --json 'orders:*' | jq -r 'select(.owners[0].process.overdue).name'
`

// listOptions are the command line of ls.
type listOptions struct {
	access
	systems bool
}

func (o *listOptions) flags() *flag.FlagSet {
	flags := o.access.flags("ls")
	flags.BoolVar(&o.systems, "systems", false, "")
	return flags
}

// list runs the subcommand ls.
func list(args []string, env environment) int {
	o := listOptions{access: access{environment: env}}
	pattern := "*"
	code, ok := o.parse(o.flags(), args, listHelp, func() error {
		if len(o.args) == 1 && !o.systems {
			pattern, o.args = o.args[0], nil
		}
		return o.none()
	})
	if !ok {
		return code
	}
	return o.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		inspector := inspect.Inspector{Client: client, Prefix: o.prefix}
		unread, first := 0, ""
		inspector.Unread = func(key string, err error) {
			if unread++; unread == 1 {
				first = fmt.Sprintf("%q: %v", key, err)
			}
		}
		if o.systems {
			all, err := inspector.Systems(ctx)
			switch cut := errors.Is(err, inspect.ErrMoreSystems); {
			case err != nil && !cut:
				return 0, err
			case cut:
				o.complain(err)
			case len(all) == 0:
				o.complain(fmt.Errorf("no System has a record with the key prefix %q; -prefix names another", o.prefix))
			}
			return 0, o.printSystems(all)
		}
		// Print the locks that were found, and then the error.
		all, names, unknown := inspector.Find(ctx, pattern)
		if unknown != nil && client.Mode() != rueidis.ClientModeCluster {
			return 0, unknown
		}
		if problem := o.printLocks(all); problem != nil {
			return 0, problem
		}
		counters, err := inspector.CountersOf(ctx, names)
		if problem := o.printCounters(counters); problem != nil {
			return 0, problem
		}
		if unread > 0 {
			o.complain(fmt.Errorf(
				"keys that Redis refuses to read: %d; their locks, kinds or waiters are not shown; the first is %s",
				unread, first))
		}
		if unknown != nil {
			return 0, fmt.Errorf("not all locks are listed: %w", unknown)
		}
		if errors.Is(err, inspect.ErrRights) {
			o.complain(fmt.Errorf("semaphores, expirable semaphores and latches are not listed, or not all: %w", err))
			return 0, nil
		}
		return 0, err
	})
}

func (o *listOptions) printLocks(all []inspect.Lock) error {
	if o.json {
		return printEach(o.access, all)
	}
	return o.table("NAME\tKIND\tCOUNT\tTTL\tHELD\tWAITERS\tWAITED\tHOLDER", func(row func(cells ...any)) {
		for _, v := range all {
			for i, owner := range v.Owners {
				name := shown(v.Name)
				if i > 0 {
					name = ""
				}
				row(name, kindOf(v, i), owner.Count, ttl(v.TTL), atLeast(owner.HeldAtLeast), waiters(v), waited(v),
					strings.Join(append([]string{recordOf(owner.Process).String() + noted(owner.Note)}, v.Problems...), "; "))
			}
			if v.MoreOwners > 0 {
				row("", "", "", "", "", moreOwners(v))
			}
		}
	})
}

func (o *listOptions) printCounters(all []inspect.Counter) error {
	if o.json {
		return printEach(o.access, all)
	}
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(o.stdout)
	return o.table("NAME\tKIND\tCOUNT\tTAKEN\tTTL\tWAITERS", func(row func(cells ...any)) {
		for _, c := range all {
			cells := []any{shown(c.Name), c.Kind, c.Count, c.Taken, ttl(c.TTL), c.Waiters}
			if c.Problem != "" {
				cells = append(cells, c.Problem)
			}
			row(cells...)
		}
	})
}

// kindOf returns the mode of an owner of a read/write lock, and the kind of any other lock.
func kindOf(v inspect.Lock, owner int) string {
	if mode := v.Owners[owner].Mode; mode != "" {
		return mode
	}
	return v.Kind
}

func (o *listOptions) printSystems(all []inspect.Process) error {
	if o.json {
		return printEach(o.access, all)
	}
	return o.table("APPLICATION\tHOST\tPID\tUP SINCE\tVERSION\tSEEN\tCLIENT", func(row func(cells ...any)) {
		for _, v := range all {
			seen := (time.Duration(v.Seen) * time.Millisecond).Round(time.Second).String() + " ago"
			if v.Overdue {
				seen += ", overdue"
			}
			row(shown(v.Application), shown(v.Host), v.PID, v.Since.UTC().Format(time.RFC3339), shown(v.Version), seen, shown(v.Client))
		}
	})
}

// printEach prints a line of JSON for each value.
func printEach[T any](a access, all []T) error {
	for _, v := range all {
		if err := a.print(v); err != nil {
			return err
		}
	}
	return nil
}

// table prints rows under a header, in columns.
func (a *access) table(header string, each func(row func(cells ...any))) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, header)
	each(func(cells ...any) {
		for i, cell := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	})
	return w.Flush()
}

// waiters describes how many wait for a lock: "2+3" is two, and three in the process that holds it.
func waiters(v inspect.Lock) string {
	if !v.Held || v.Kind == inspect.KindFair {
		return v.Waiters.String()
	}
	return v.Waiters.String() + "+" + v.HolderWaiters().String()
}

// waited returns the longest known wait, "-" for none.
func waited(v inspect.Lock) string {
	switch longest := v.LongestWait(); {
	case longest.Known:
		return ttl(longest.N)
	case v.Waiters == inspect.Known(0) && (v.Kind == inspect.KindFair || v.HolderWaiters() == inspect.Known(0)):
		return "-"
	}
	return "?"
}

// atLeast formats a minimum time in ms.
func atLeast(ms inspect.Number) string {
	if !ms.Known {
		return "?"
	}
	return "≥" + ttl(ms.N)
}

// moreOwners describes how many owners of a lock are left out.
func moreOwners(v inspect.Lock) string { return fmt.Sprintf("and %d more", v.MoreOwners) }

// shown returns a text of Redis for a terminal or a table.
func shown(text string) string { return printable.Text(text) }

// noted returns the note of a holder in quotes, since it may be any text; "" if there is no note. It follows the
// holder.
func noted(note string) string {
	if note == "" {
		return ""
	}
	return ", note " + printable.Quote(note)
}

// recordOf converts a process to the type of the library.
func recordOf(v inspect.Process) lockkeeper.Process {
	p := lockkeeper.Process{
		Client: v.Client, Application: v.Application, Host: v.Host, PID: v.PID, Version: v.Version,
		Seen: time.Duration(v.Seen) * time.Millisecond, Overdue: v.Overdue,
	}
	if v.Since != nil {
		p.Since = *v.Since
	}
	return p
}

// ttl formats a TTL in ms.
func ttl(ms int64) string {
	switch {
	case ms == inspect.NoKey:
		return "-"
	case ms < 0, ms > math.MaxInt64/int64(time.Millisecond): // or in centuries
		return "never"
	}
	d := time.Duration(ms) * time.Millisecond
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
