package core_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// redis is a model of the server, as far as one lock can see it: its hash (or, of a
// MultiLock, those of its parts), what its kind keeps beside it, and the subscribers of
// its channels. Its operations do what the scripts do.
type redis struct {
	w *world
	// rate is how fast its clock runs compared with the processes' clock.
	rate float64

	parts []*hash
	token int64 // the counter of a fenced lock
	line  line  // the queue of a fair lock
	// writer is the announcement of a read/write lock, until it expires.
	writer      string
	writerUntil core.Instant

	frozenUntil core.Instant
	// subscribers are those of each channel, by name.
	subscribers map[string]map[string]func()
	// broken remembers which owners were robbed by something that the protocol
	// cannot prevent (DEL, flush, force-release, a crash), and when.
	broken map[string]core.Instant
	// forgetful: it has crashed, so that its tokens began anew.
	forgetful bool
}

// counts says how often an owner holds a lock, in each mode.
type counts struct{ exclusive, shared int }

func (c counts) total() int { return c.exclusive + c.shared }

// hash is the key of a lock: its owners, and when it expires.
type hash struct {
	r         *redis
	held      map[string]counts
	unending  bool
	expiresAt core.Instant // on the processes' clock
	// leases are the keys beside it, of each read hold: when they expire.
	leases map[string][]core.Instant
}

func newRedis(w *world, rate float64) *redis {
	r := &redis{
		w: w, rate: rate, line: line{scores: map[string]time.Duration{}},
		subscribers: map[string]map[string]func(){}, broken: map[string]core.Instant{},
	}
	n := 1
	if w.kind.Parts {
		n = 2
	}
	for range n {
		r.parts = append(r.parts, &hash{r: r, held: map[string]counts{}, leases: map[string][]core.Instant{}})
	}
	return r
}

// expire removes what has run out.
func (r *redis) expire() {
	for _, h := range r.parts {
		if len(h.held) > 0 && !h.unending && r.w.now >= h.expiresAt {
			clear(h.held)
		}
	}
	if r.w.now >= r.writerUntil {
		r.writer = ""
	}
}

// clock is its time of day.
func (r *redis) clock() time.Duration {
	return time.Duration(float64(r.w.now) * r.rate).Truncate(time.Millisecond)
}

// end is when a TTL that is set now runs out. Redis takes it in whole milliseconds.
func (r *redis) end(lease time.Duration) core.Instant {
	return r.w.now + time.Duration(float64(lease.Truncate(time.Millisecond))/r.rate)
}

// left is the rest of a TTL.
func (r *redis) left(end core.Instant) time.Duration {
	return time.Duration(float64(end-r.w.now) * r.rate).Truncate(time.Millisecond)
}

func (h *hash) free() bool { return len(h.held) == 0 }

func (h *hash) pexpire(lease time.Duration) { h.unending, h.expiresAt = false, h.r.end(lease) }

// pttl is -1 without an end, and -2 without a key.
func (h *hash) pttl() time.Duration {
	switch {
	case h.free():
		return -2
	case h.unending:
		return -1
	}
	return h.r.left(h.expiresAt)
}

func (h *hash) owners() []string { return slices.Sorted(maps.Keys(h.held)) }

// some is one of the owners, "" if there is none.
func (h *hash) some() string {
	owners := h.owners()
	switch len(owners) {
	case 0:
		return ""
	case 1:
		return owners[0]
	}
	return owners[h.r.w.tape.pick(len(owners))]
}

func (h *hash) set(owner string, count int, lease time.Duration) {
	h.held[owner] = counts{exclusive: count}
	h.pexpire(lease)
}

func (r *redis) publish(channel string) {
	for _, name := range slices.Sorted(maps.Keys(r.subscribers[channel])) {
		r.subscribers[channel][name]()
	}
}

func (r *redis) subscribe(channel, name string, heard func()) {
	if r.subscribers[channel] == nil {
		r.subscribers[channel] = map[string]func(){}
	}
	r.subscribers[channel][name] = heard
}

func (r *redis) unsubscribe(channel, name string) {
	if delete(r.subscribers[channel], name); len(r.subscribers[channel]) == 0 {
		delete(r.subscribers, channel)
	}
}

// unsubscribeAll ends all subscriptions of a name.
func (r *redis) unsubscribeAll(name string) {
	for _, channel := range slices.Sorted(maps.Keys(r.subscribers)) {
		r.unsubscribe(channel, name)
	}
}

func (r *redis) listeners() (n int) {
	for _, names := range r.subscribers {
		n += len(names)
	}
	return n
}

// rob deletes a key from under its owners.
func (r *redis) rob(h *hash) {
	r.expire()
	for owner := range h.held {
		r.broken[owner] = r.w.now
	}
	clear(h.held)
}

// crash loses everything.
func (r *redis) crash() {
	for _, h := range r.parts {
		r.rob(h)
		clear(h.leases)
	}
	r.line.forget()
	r.token, r.forgetful, r.writer = 0, true, ""
	clear(r.subscribers)
}

// has tells how an owner holds the lock, if it does, and until when the key lives.
func (r *redis) has(owner string) (held counts, until core.Instant, ok bool) {
	for i, h := range r.parts {
		each, found := h.held[owner]
		if !found {
			return counts{}, 0, false
		}
		end := h.expiresAt
		for n := range each.shared {
			end = min(end, h.lease(owner, n))
		}
		if held = each; i == 0 || end < until {
			until = end
		}
	}
	return held, until, true
}

// run carries out a command of the process with that uuid.
func (r *redis) run(uuid string, c core.Command) core.Result {
	r.expire()
	switch kind := r.w.kind; {
	case kind.Shares:
		return r.runReadWrite(uuid, c)
	case kind.Queued && (c.Kind == core.Enrol || c.Kind == core.Release && c.Count == 0 || c.Kind == core.ForceRelease):
		return r.runFair(uuid, c)
	}
	if c.Kind == core.Acquire && c.Count == 1 {
		return r.take(uuid, c)
	}
	// Every part carries out the command.
	all := core.Result{Outcome: core.Done}
	for _, h := range r.parts {
		one := h.run(field(uuid, c.Term), c)
		all.WasHeld = all.WasHeld || one.WasHeld
		switch one.Outcome {
		case core.Absent, core.Refused:
			all.Outcome, all.Taken = core.Absent, all.Taken || one.Taken || one.Outcome == core.Refused
		case core.Kept:
			all.Outcome = one.Outcome
		default:
			all.Others = max(all.Others, one.Others)
		}
		if len(r.parts) == 1 {
			return one
		}
	}
	return all
}

// take takes a lock that is free, in all its parts, or sets its count to 1.
func (r *redis) take(uuid string, c core.Command) core.Result {
	owner := field(uuid, c.Term)
	for _, h := range r.parts {
		if _, ours := h.held[owner]; !h.free() && !ours {
			return h.refusal(uuid)
		}
	}
	for _, h := range r.parts {
		h.set(owner, 1, c.Lease)
	}
	result := core.Result{Outcome: core.Done}
	if r.w.kind.Tokens > 0 && c.Tokens > 0 {
		r.token += c.Tokens
		for range r.w.kind.Tokens {
			result.Tokens = append(result.Tokens, r.token)
		}
	}
	return result
}

func (h *hash) refusal(uuid string) core.Result {
	other := h.some()
	return core.Result{Outcome: core.Refused, TTL: h.pttl(), Holder: other, OwnTerm: ownTerm(uuid, other)}
}

// run carries out a command about one hash that has one owner.
func (h *hash) run(owner string, c core.Command) core.Result {
	_, ours := h.held[owner]
	switch c.Kind {
	case core.Acquire:
		switch {
		case h.free():
			return core.Result{Outcome: core.Absent}
		case !ours:
			uuid, _, _ := strings.Cut(owner, ":")
			return h.refusal(uuid)
		}
		h.set(owner, c.Count, c.Lease)
		return core.Result{Outcome: core.Done}
	case core.Release:
		switch {
		case !ours:
			return core.Result{Outcome: core.Absent}
		case c.Count == 0:
			clear(h.held)
			h.r.publish("")
		default:
			h.set(owner, c.Count, c.Lease)
		}
		return core.Result{Outcome: core.Done}
	case core.Renew:
		if !ours {
			return core.Result{Outcome: core.Absent, Taken: !h.free()}
		}
		h.pexpire(c.Lease)
		return core.Result{Outcome: core.Done}
	case core.Yield:
		return h.yield(owner, c)
	case core.ForceRelease:
		held := !h.free()
		if held {
			h.r.rob(h)
			h.r.publish("")
		}
		return core.Result{Outcome: core.Done, WasHeld: held}
	}
	panic("no such command")
}

func (h *hash) yield(owner string, c core.Command) core.Result {
	if _, ours := h.held[owner]; !ours {
		return core.Result{Outcome: core.Absent}
	}
	others := len(h.r.subscribers[""])
	if c.Subscribed {
		others--
	}
	// Of a lock with parts it is not asked who waits for which.
	if others > 0 || c.Open || len(h.r.parts) > 1 {
		clear(h.held)
		h.r.publish("")
		return core.Result{Outcome: core.Done, Others: max(others, 0)}
	}
	h.set(owner, 1, c.Lease)
	return core.Result{Outcome: core.Kept}
}
