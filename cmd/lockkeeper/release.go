//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

const releaseHelp = `usage: lockkeeper release [-redis URL] [-prefix P] [--json] --force [-owner OWNER …] NAME

Releases a lock from the owner that -owner names, as inspect has shown it: if another one holds the lock
by now, it is left alone. Without -owner, the owner is the one that holds the lock when release reads it.
Even if its command reaches Redis late, it does not release the hold of another owner. For a lock that is
held by readers, it releases the readers that it has read, at most 32. The holder is not notified. If
its process is alive, it continues as if it held the lock: until its next renewal (10 s by default), with a
fixed lease until that ends, or without limit in Java. Meanwhile another process may acquire the lock. So
release a lock only if you know that its process is dead; inspect shows the process. A lock whose process
is dead becomes free when its TTL ends.

A RedLock must be released on each of its servers, a MultiLock member by member.

` + accessHelp + `  --force        required
  -owner OWNER   the owner field from which the lock is released, and from no other; several for readers

The exit code is 0 if the owner was released, and 1 if the lock was free, or is not held by that
owner any more. 64: the command line is wrong. 69: Redis cannot be reached, or refuses.

  lockkeeper release --force -owner b98a484c-08d0-44fe-801b-6b4288024c43:1 nightly-report
`

// releaseOptions are the command line of release.
type releaseOptions struct {
	access
	force  bool
	owners []string
}

func (o *releaseOptions) flags() *flag.FlagSet {
	flags := o.access.flags("release")
	flags.BoolVar(&o.force, "force", false, "")
	flags.Func("owner", "", func(owner string) error {
		o.owners = append(o.owners, owner)
		return nil
	})
	return flags
}

// release runs the subcommand release.
func release(args []string, env environment) int {
	o := releaseOptions{access: access{environment: env}}
	code, ok := o.parse(o.flags(), args, releaseHelp, func() error {
		if !o.force {
			return errors.New("--force is missing: a holder that is alive would continue without the lock")
		}
		return o.oneName()
	})
	if !ok {
		return code
	}
	return o.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		inspector := inspect.Inspector{Client: client, Prefix: o.prefix}
		before, err := one(ctx, inspector, o.args[0])
		if err != nil {
			return 0, notALock(ctx, inspector, o.args[0], err, "release is for locks; "+
				"a permit of an expirable semaphore becomes free when its lease ends, or by ReleaseID (tryRelease in Java)")
		}
		was, from := false, strings.Join(o.owners, ", ")
		named := before
		if o.owners != nil {
			named.MoreOwners = 0
			named.Owners = slices.DeleteFunc(slices.Clone(before.Owners), func(owner inspect.Owner) bool {
				return !slices.Contains(o.owners, owner.Field)
			})
		}
		if len(named.Owners) > 0 {
			from = holder(named)
		}
		if before.Held {
			if was, err = o.free(ctx, before); err != nil {
				return 0, err
			}
		}
		code := 0
		if !was {
			code = exitNo
		}
		switch {
		case o.json:
			err = o.print(released{was, before})
		case was && before.Owners[0].Mode == "read":
			_, err = fmt.Fprintf(o.stdout, "%s is no longer read by %s\n", shown(before.Name), from)
		case was:
			_, err = fmt.Fprintf(o.stdout, "%s is released from %s; a waiter may have it now\n", shown(before.Name), from)
		case before.Held && len(named.Owners) == 0:
			_, err = fmt.Fprintf(o.stdout, "%s is held by %s, and not by %s; nothing was released\n", shown(before.Name), holder(before), from)
		case before.Held:
			_, err = fmt.Fprintf(o.stdout, "%s is no longer held by %s; nothing was released\n", shown(before.Name), from)
		default:
			_, err = fmt.Fprintf(o.stdout, "%s was free\n", shown(before.Name))
		}
		return code, err
	})
}

// released is the JSON output of release, with the lock before the release.
type released struct {
	Released bool `json:"released"`
	inspect.Lock
}

// free force-releases a lock of any kind.
func (o *releaseOptions) free(ctx context.Context, v inspect.Lock) (was bool, err error) {
	locks, err := lockkeeper.Open(ctx, o.redis, lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: o.prefix, Anonymous: true}))
	if err != nil {
		return false, err
	}
	defer func() { _ = locks.Close(context.WithoutCancel(ctx)) }() // locks has no holds
	form, byMode := kinds.Forms[v.Owners[0].Mode]
	if !byMode {
		form.Kind, _ = kinds.Named(v.Kind)
	}
	owners := o.owners
	if owners == nil {
		for _, owner := range v.Owners {
			owners = append(owners, owner.Field)
		}
	}
	return locks.LockOf(form.Of(v.Name)).ForceRelease(ctx, owners...)
}

// notALock returns a better error than err if a semaphore or a latch has the name; advice is a part of it.
func notALock(ctx context.Context, inspector inspect.Inspector, name string, err error, advice string) error {
	if c, _ := inspector.Counter(ctx, name); c != nil {
		return fmt.Errorf("%q is not a lock but a number in Redis (%s): %s", c.Name, c.Kind, advice)
	}
	return err
}
