package core_test

import (
	"maps"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// redis is a model of the server, as far as one lock can see it: one hash, its
// expiry, and the subscribers of one channel. Its operations do what the scripts do.
type redis struct {
	w *world
	// rate is how fast its clock runs compared with the processes' clock.
	rate float64

	owner     string // the hash's one field; "" if there is no key
	count     int
	unending  bool
	expiresAt core.Instant // on the processes' clock

	frozenUntil core.Instant
	subscribers map[string]func()
	// broken remembers which owners were robbed by something that the protocol
	// cannot prevent (DEL, flush, force-release, a crash), and when.
	broken map[string]core.Instant
}

// expire removes the key when its time has come.
func (r *redis) expire() {
	if r.owner != "" && !r.unending && r.w.now >= r.expiresAt {
		r.owner = ""
	}
}

// pexpire sets the TTL, which Redis takes in whole milliseconds.
func (r *redis) pexpire(lease time.Duration) {
	r.unending = false
	r.expiresAt = r.w.now + time.Duration(float64(lease.Truncate(time.Millisecond))/r.rate)
}

// pttl is -1 without an end; the key must exist.
func (r *redis) pttl() time.Duration {
	if r.unending {
		return -1
	}
	return time.Duration(float64(r.expiresAt-r.w.now) * r.rate).Truncate(time.Millisecond)
}

func (r *redis) set(owner string, count int, lease time.Duration) {
	r.owner, r.count = owner, count
	r.pexpire(lease)
}

func (r *redis) publish() {
	for _, name := range slices.Sorted(maps.Keys(r.subscribers)) {
		r.subscribers[name]()
	}
}

// rob deletes the key from under its owner.
func (r *redis) rob() {
	if r.expire(); r.owner != "" {
		r.broken[r.owner] = r.w.now
		r.owner = ""
	}
}

// crash loses everything.
func (r *redis) crash() {
	r.rob()
	clear(r.subscribers)
}

// run carries out a command of the process with that uuid.
func (r *redis) run(uuid string, c core.Command) core.Result {
	r.expire()
	owner := field(uuid, c.Term)
	switch c.Kind {
	case core.Acquire:
		return r.acquire(uuid, owner, c.Count, c.Lease)
	case core.Release:
		return r.release(owner, c.Count, c.Lease)
	case core.Renew:
		if r.owner != owner {
			return core.Result{Outcome: core.Absent, Taken: r.owner != ""}
		}
		r.pexpire(c.Lease)
		return core.Result{Outcome: core.Done}
	case core.Yield:
		return r.yield(owner, c)
	case core.ForceRelease:
		held := r.owner != ""
		if held {
			r.rob()
			r.publish()
		}
		return core.Result{Outcome: core.Done, WasHeld: held}
	}
	panic("no such command")
}

func (r *redis) acquire(uuid, owner string, count int, lease time.Duration) core.Result {
	switch {
	case r.owner == "" && count != 1:
		return core.Result{Outcome: core.Absent}
	case r.owner != "" && r.owner != owner:
		return core.Result{Outcome: core.Refused, TTL: r.pttl(), Holder: r.owner, OwnTerm: ownTerm(uuid, r.owner)}
	}
	r.set(owner, count, lease)
	return core.Result{Outcome: core.Done}
}

func (r *redis) release(owner string, count int, lease time.Duration) core.Result {
	switch {
	case r.owner != owner:
		return core.Result{Outcome: core.Absent}
	case count == 0:
		r.owner = ""
		r.publish()
	default:
		r.set(owner, count, lease)
	}
	return core.Result{Outcome: core.Done}
}

func (r *redis) yield(owner string, c core.Command) core.Result {
	if r.owner != owner {
		return core.Result{Outcome: core.Absent}
	}
	others := len(r.subscribers)
	if c.Subscribed {
		others--
	}
	if others > 0 || c.Open {
		r.owner = ""
		r.publish()
		return core.Result{Outcome: core.Done, Others: max(others, 0)}
	}
	r.set(owner, 1, c.Lease)
	return core.Result{Outcome: core.Kept}
}
