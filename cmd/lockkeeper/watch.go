//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/look"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const watchHelp = `usage: lockkeeper watch [-redis URL] [-prefix P] [--json] [-every 2s] [NAME …]

Prints who holds each lock, and then a line whenever that changes, until it is interrupted.
With names it looks at these locks alone; without, at all of them, as ls does. What happens
between two looks is not seen. While Redis does not serve it goes on, and says so on stderr.

` + accessHelp + `  -every 2s      how often to look

The exit code is 0 after SIGINT and SIGTERM. 64: the command line is wrong. 69: Redis cannot be
reached when it begins, or refuses.

  lockkeeper watch nightly-report
`

// watchOptions are the command line of watch.
type watchOptions struct {
	access
	every time.Duration
	last  map[string]look.Lock
	// unserved says that Redis did not serve the last look.
	unserved bool
}

func (o *watchOptions) flags() *flag.FlagSet {
	flags := o.access.flags("watch")
	flags.DurationVar(&o.every, "every", 2*time.Second, "")
	return flags
}

// watch is the subcommand of that name.
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
			all, err := o.look(ctx, look.Looker{Client: client, Prefix: o.prefix})
			if err == nil {
				err = o.tell(all)
			}
			if ctx.Err() != nil {
				return 0, nil
			}
			if err := o.outage(err); err != nil {
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

// outage takes note that Redis does not serve, or serves again. Any other error it returns.
func (o *watchOptions) outage(err error) error {
	var failed *redisio.Error
	switch {
	case err == nil && o.unserved:
		fmt.Fprintf(o.stderr, "%s  Redis serves again\n", time.Now().Format(time.TimeOnly))
	case err == nil:
	case !errors.As(err, &failed) || !failed.Transient:
		return err
	case !o.unserved:
		fmt.Fprintf(o.stderr, "%s  Redis does not serve: %v\n", time.Now().Format(time.TimeOnly), err)
	}
	o.unserved = err != nil
	return nil
}

func (o *watchOptions) look(ctx context.Context, l look.Looker) ([]look.Lock, error) {
	if len(o.args) == 0 {
		return l.List(ctx, "*", math.MaxInt)
	}
	var keys []string
	for _, name := range o.args {
		keys = append(keys, o.prefix+name)
	}
	all, err := l.Look(ctx, keys, true)
	if err != nil {
		return nil, err
	}
	return all, l.Identify(ctx, all)
}

// change is a lock whose owners are others than at the last look.
type change struct {
	At time.Time `json:"at"`
	look.Lock
}

// tell prints the locks that have changed.
func (o *watchOptions) tell(all []look.Lock) error {
	now := map[string]look.Lock{}
	var changed []look.Lock
	for _, v := range all {
		now[v.Name] = v
		if before, known := o.last[v.Name]; !known && (v.Held || len(o.args) > 0) || holders(v) != holders(before) {
			changed = append(changed, v)
		}
	}
	for name, before := range o.last {
		if _, held := now[name]; !held && before.Held {
			changed = append(changed, look.Lock{Name: name, NameBytes: before.NameBytes, Kind: before.Kind})
		}
	}
	o.last = now
	slices.SortFunc(changed, func(a, b look.Lock) int { return strings.Compare(a.Name, b.Name) })
	at := time.Now()
	for _, v := range changed {
		if o.json {
			if err := o.print(change{at, v}); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(o.stdout, "%s  %s  %s\n", at.Format(time.TimeOnly), shown(v.Name), heldBy(v)); err != nil {
			return err
		}
	}
	return nil
}

// holders identifies the owners of a lock.
func holders(v look.Lock) string {
	var fields []string
	for _, o := range v.Owners {
		fields = append(fields, o.Mode+o.Field)
	}
	return strings.Join(fields, " ")
}

// holder is the process of the first owner, and how many there are besides.
func holder(v look.Lock) string {
	text := recordOf(v.Owners[0].Process).String()
	if more := len(v.Owners) - 1; more > 0 {
		text += fmt.Sprintf(", and by %d more", more)
	}
	return text
}

// heldBy says in one line who has the lock.
func heldBy(v look.Lock) string {
	if !v.Held {
		return "is free"
	}
	return "is held by " + holder(v)
}
