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
holds each. The PATTERN is one of Redis: orders:*. To find them, ls looks at all keys,
some 500 at a time, in three SCANs of each master: for type hash, string and zset. It changes
nothing. A RedLock is listed on each of its servers.

Below come semaphores, permits that expire and latches: how many permits are free, or how many
count-downs are missing, and how many permits that expire are taken. In Redis they are numbers
like many others. So ls finds those that have such permits taken, that somebody waits for, or
that Lockkeeper's processes have used within an hour; inspect shows the others, too. A user
who lacks rights for these is told so on stderr, and sees the locks alone, or some of these.

` + accessHelp + `  -systems       list the processes of all Systems instead; this looks at their records alone

A kind is told by what is in Redis: a fair lock that nobody waits for looks like a plain one.
WAITERS are the clients that listen for the release, or the length of a fair lock's queue; in
a cluster some are not seen. 2+3 is two, and three requests in the process that holds the lock.
Redis does not know these: they are what that process wrote in its record, some seconds ago.
HELD is for how long the process has had the lock at least, by its record, and WAITED is the
longest wait that Redis knows. "?" is not known: a record names at most 40 locks, and Java's
clients have none. "up since" is the start of a process. A System that is overdue is dead,
hangs, or does not reach Redis.

The exit code is 0, also if there are no locks. 64: the command line is wrong. 69: Redis cannot
be reached, or refuses. If some servers of a cluster do not answer, ls lists what the others have,
names those on stderr, and exits with 69.

With --json all of these are objects of one stream. null is not known; problem or problems say
what is wrong with what is in Redis. kind is "plain", "fenced", "fair" or "read/write" for a lock,
else "semaphore", "permits that expire", "latch", or if these look the same, "semaphore, permits
that expire, or latch". Only locks have owners.

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

// list is the subcommand ls.
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
		l := inspect.Inspector{Client: client, Prefix: o.prefix}
		if o.systems {
			all, err := l.Systems(ctx)
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
		// What is known is printed, and then what is not.
		all, unknown := l.List(ctx, pattern, math.MaxInt)
		if unknown != nil && client.Mode() != rueidis.ClientModeCluster {
			return 0, unknown
		}
		if problem := o.printLocks(all); problem != nil {
			return 0, problem
		}
		counters, err := l.Counters(ctx, pattern)
		if problem := o.printCounters(counters); problem != nil {
			return 0, problem
		}
		if unknown != nil {
			return 0, fmt.Errorf("not all locks are listed: %w", unknown)
		}
		if errors.Is(err, inspect.ErrRights) {
			o.complain(fmt.Errorf("semaphores, permits that expire and latches are not listed, or not all: %w", err))
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
					strings.Join(append([]string{recordOf(owner.Process).String()}, v.Problems...), "; "))
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

// kind is the kind of a lock, and how that owner has it.
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

// waiters is how many wait for a lock: "2+3" is two, and three in the process that holds it.
func waiters(v inspect.Lock) string {
	if !v.Held || v.Kind == inspect.KindFair {
		return v.Waiters.String()
	}
	return v.Waiters.String() + "+" + v.HolderWaiters().String()
}

// waited is the longest wait that is known.
func waited(v inspect.Lock) string {
	switch longest := v.LongestWait(); {
	case longest.Known:
		return ttl(longest.N)
	case v.Waiters == inspect.Known(0) && (v.Kind == inspect.KindFair || v.HolderWaiters() == inspect.Known(0)):
		return "-"
	}
	return "?"
}

// atLeast is a time in ms that may be longer.
func atLeast(ms inspect.Number) string {
	if !ms.Known {
		return "?"
	}
	return "≥" + ttl(ms.N)
}

// moreOwners says how many owners of a lock are not shown.
func moreOwners(v inspect.Lock) string { return fmt.Sprintf("and %d more", v.MoreOwners) }

// shown is a text of Redis for a terminal and a table.
func shown(text string) string { return printable.Text(text) }

// recordOf is a process as the library describes it.
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

// ttl is a TTL for people.
func ttl(ms int64) string {
	switch {
	case ms == inspect.NoKey:
		return "-"
	case ms < 0:
		return "never"
	}
	d := time.Duration(ms) * time.Millisecond
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
