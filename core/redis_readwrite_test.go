package core_test

import (
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// The read/write lock in the model of Redis.

func client(owner string) string {
	name, _, _ := strings.Cut(owner, ":")
	return name
}

// written tells whether a writer holds the lock.
func (h *hash) written() bool {
	for _, each := range h.held {
		if each.exclusive > 0 {
			return true
		}
	}
	return false
}

// lease is when the n-th read lease of an owner runs out.
func (h *hash) lease(owner string, n int) core.Instant {
	if leases := h.leases[owner]; n < len(leases) {
		return leases[n]
	}
	return 0
}

// hold sets how often the owner holds the lock, and for how long.
func (h *hash) hold(owner string, c counts, lease time.Duration) {
	left := h.pttl()
	h.held[owner] = c
	h.leases[owner] = nil
	for range c.shared {
		h.leases[owner] = append(h.leases[owner], h.r.end(lease))
	}
	if len(h.held) == 1 {
		h.pexpire(lease)
	} else {
		h.pexpire(max(left, lease))
	}
}

// leave ends all that the owner holds. It tells whether the lock is free now.
func (h *hash) leave(owner string) bool {
	delete(h.held, owner)
	delete(h.leases, owner)
	var longest time.Duration
	for other, c := range h.held {
		for n := range c.shared {
			longest = max(longest, h.r.left(h.lease(other, n)))
		}
	}
	if longest > 0 {
		h.pexpire(longest)
		return false
	}
	clear(h.held)
	return true
}

func (r *redis) withdraw(owner string) {
	if r.writer == owner {
		r.writer = ""
	}
}

func (r *redis) announced(mine string) bool { return r.writer != "" && client(r.writer) != mine }

// others is how many clients besides this one wait for the lock.
func (r *redis) others(mine string, subscribed bool) int {
	seen := len(r.subscribers[""])
	if subscribed {
		seen--
	}
	if r.announced(mine) {
		return max(seen, 1)
	}
	return max(seen, 0)
}

func (r *redis) runReadWrite(uuid string, c core.Command) core.Result {
	h, owner := r.parts[0], field(uuid, c.Term)
	held, ours := h.held[owner]
	switch {
	case c.Kind == core.Acquire, c.Kind == core.Release && c.Count+c.Shared > 0:
		return r.setReadWrite(uuid, c)
	case c.Kind == core.Release:
		if r.withdraw(owner); !ours {
			return core.Result{Outcome: core.Absent}
		}
		if h.leave(owner) {
			r.publish("")
		}
		return core.Result{Outcome: core.Done}
	case c.Kind == core.Renew:
		if !ours {
			return core.Result{Outcome: core.Absent, Taken: !h.free()}
		}
		for n := range h.leases[owner] {
			h.leases[owner][n] = r.end(c.Lease)
		}
		h.pexpire(max(h.pttl(), c.Lease))
		return core.Result{Outcome: core.Done}
	case c.Kind == core.Yield:
		if !ours {
			return core.Result{Outcome: core.Absent}
		}
		if others := r.others(uuid, c.Subscribed); others > 0 || c.Open {
			if r.withdraw(owner); h.leave(owner) {
				r.publish("")
			}
			return core.Result{Outcome: core.Done, Others: others}
		}
		if held.exclusive > 0 {
			h.hold(owner, counts{exclusive: 1}, c.Lease)
		} else {
			h.hold(owner, counts{shared: 1}, c.Lease)
		}
		return core.Result{Outcome: core.Kept}
	case c.Kind == core.Look:
		return core.Result{Outcome: core.Done, Others: r.others(uuid, c.Subscribed)}
	case c.Kind == core.ForceRelease:
		if h.free() || h.written() != (c.Mode == core.Exclusive) {
			return core.Result{Outcome: core.Done}
		}
		r.rob(h)
		clear(h.leases)
		r.publish("")
		return core.Result{Outcome: core.Done, WasHeld: true}
	}
	panic("no such command")
}

func (r *redis) setReadWrite(uuid string, c core.Command) core.Result {
	h, owner, want := r.parts[0], field(uuid, c.Term), counts{c.Count, c.Shared}
	held, ours := h.held[owner]
	written, free := h.written(), h.free()
	upgrade := ours && held.exclusive == 0 && want.exclusive > 0
	if upgrade {
		free = h.leave(owner)
	}
	var granted bool
	switch {
	case free:
		if !upgrade && want.total() > 1 {
			return core.Result{Outcome: core.Absent}
		}
		granted = true
	case ours:
		granted = !upgrade
	default:
		granted = !written && want == counts{shared: 1} && !r.announced(uuid)
	}
	if granted {
		r.withdraw(owner)
		h.hold(owner, want, c.Lease)
		if held.exclusive > 0 && want.exclusive == 0 {
			r.publish("")
		}
		return core.Result{Outcome: core.Done}
	}
	if want.exclusive > 0 && c.Announce {
		r.writer, r.writerUntil = owner, r.end(2*r.w.cfg.Poll)
	}
	return h.refusal(uuid)
}
