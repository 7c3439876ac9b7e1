package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// scriptConfig is the configuration of the scripts. The margin of its lease is 102 ms.
var scriptConfig = machine.Config{
	Watchdog: 10 * sec, Renewal: 3 * sec, HandOffLimit: 100 * ms, ForcedYield: sec, Poll: sec, CallTimeout: sec, QueueLimit: 200,
}

// TestDecisions plays the scripts in testdata; package machinetest describes their form. Lines of a lock's scripts:
//
//	held owner=7                        set up: client a, of owner 7, holds the lock since 2 ms; see setUp
//	release a -> a: over; release #1    an event: the hold of a ends, and a command releases the term 1
//	release: done -> A: freed x0        the reply; A is the answer to the release by a, with the hold count
//	acquire b -> acquire #2 x1 for 10s  client b asks; a command takes the lock: the term 2, the count 1, a lease of 10 s
//	acquire: done -> b: granted x1 until 9.9s
//	first renew: done                   the reply to the first renewal without one; "again" is a second reply to the last
//	fail 9s release: loading            the reply to each command until 9 s
//	wakes 3s                            a check, as "idle" and "sees x1 until 9.898s" are; see check
//
// Every event is applied to a copy first, and must not change the original.
func TestDecisions(t *testing.T) {
	machinetest.Scripts(t, func(t *testing.T) *machinetest.Player { return &newRig(t, lock.Features{}).Player })
}

// event applies an event, and reports whether it is known.
func (r *rig) event(words []string) bool {
	r.T.Helper()
	verb, rest := words[0], words[1:]
	if kind, ok := strings.CutSuffix(verb, ":"); ok {
		r.reply(r.command(kind), parseResult(rest...))
		return true
	}
	switch verb {
	case "first": // reply to the first such command instead of the last
		slices.Reverse(r.sent)
		r.reply(r.command(strings.TrimSuffix(rest[0], ":")), parseResult(rest[1:]...))
		return true
	case "again": // a second reply to the command that was answered last
		r.reply(r.answered, parseResult(rest[1:]...))
		return true
	case "fail": // every command until a time
		end, _ := r.Time(rest[0])
		for wake := r.Now; wake < end; wake = r.wakes() {
			if r.tick(wake); len(r.sent) > 0 {
				r.event(rest[1:])
			}
		}
		return true
	}
	return r.setUp(verb, rest) || r.request(verb, rest) || r.check(verb, rest)
}

// setUp configures the lock, or brings it into a state and discards the output.
func (r *rig) setUp(verb string, words []string) bool {
	r.T.Helper()
	acquire := "acquire:"
	if r.features.Fair {
		acquire = "sync:"
	}
	switch verb {
	case "lock":
		r.configure(words)
	case "lingering": // the lease lingers, after a hold
		r.Do("asking", "2ms acquire: done alone")
		r.Play("20ms release a -> a: over; A: freed x0, handed off")
	case "asking":
		r.acquire("a", words...)
	case "held":
		options := strings.Replace(strings.Join(words, " "), "twice", "owner=7", 1)
		r.Do("asking "+options, "2ms "+acquire+" done took=1")
		if slices.Contains(words, "twice") {
			r.Do("acquire again owner=7", "acquire: done")
		}
	case "refused": // before and after its subscription is confirmed
		r.Do("asking "+strings.Join(words, " "), "2ms acquire: refused 8s", "subscribed", "4ms acquire: refused 8s")
	case "yielding": // the hand-off limit is over, and b and c wait
		r.Do("held", "acquire b", "acquire c")
		r.Play("150ms release a -> a: over; yield #1")
	default:
		return false
	}
	r.output = nil
	return true
}

// request applies an event that comes from a client, a message or a timer.
func (r *rig) request(verb string, words []string) bool {
	r.T.Helper()
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	id, owner := r.ids[first], machinetest.Owner(first)
	mode := machine.Exclusive
	if verb == "leave" || first == "shared" {
		mode = machine.Shared
	}
	switch verb {
	case "acquire":
		r.acquire(first, words[1:]...)
	case "release", "leave":
		release := machine.Release{ID: id, Owner: owner, Mode: mode, Ref: strings.ToUpper(first)}
		r.do(func(l *lock.Lock) { l.Release(r.Now, release) })
	case "cancel":
		r.do(func(l *lock.Lock) { l.Cancel(r.Now, id, owner, "cancel") })
	case "ensure":
		r.do(func(l *lock.Lock) { l.Ensure(r.Now, id, machinetest.Duration(words[1]), "ensure") })
	case "extend": // "extend a 5s", by its owner "extend owner=7 5s", or "extend a watchdog"
		lease := time.Duration(0)
		if words[1] != "watchdog" {
			lease = machinetest.Duration(words[1])
		}
		r.do(func(l *lock.Lock) { l.Extend(r.Now, id, owner, lease, "extend") })
	case "die":
		r.do(func(l *lock.Lock) { l.OwnerGone(r.Now, machine.Owner(machinetest.Number(first))) })
	case "force":
		var owners machine.Owners // "#1" is an own term, and any other word except "shared" is an owner of another process
		for _, word := range words {
			if term, own := strings.CutPrefix(word, "#"); own {
				owners.Term = machinetest.Number(term)
			}
			if word != "shared" {
				owners.Fields = append(owners.Fields, word)
			}
		}
		r.do(func(l *lock.Lock) { l.ForceRelease(r.Now, mode, owners, "force") })
	case "close":
		r.do(func(l *lock.Lock) { l.Close(r.Now) })
	case "signal":
		r.do(func(l *lock.Lock) { l.Signal(r.Now) })
	case "transferred":
		transfer := machine.Transfer{Term: machinetest.Number(strings.TrimPrefix(first, "#")), Seq: machinetest.Number(words[2])}
		if len(words) > 3 {
			transfer.Tokens = []int64{int64(machinetest.Number(words[3]))}
		}
		r.do(func(l *lock.Lock) { receive(l, r.Now, transfer) })
	case "suspect":
		r.do(func(l *lock.Lock) { l.Suspect(r.Now) })
	case "subscribed":
		r.do(func(l *lock.Lock) { l.Subscribed(r.Now, machinetest.Number("0"+strings.TrimPrefix(first, "#"))) })
	case "tick":
		r.tick(r.Now)
	case "sleep":
		end, _ := r.Time(first)
		r.sleep(end)
	case "wake":
		r.tick(max(r.wakes(words...), r.Now))
	default:
		return false
	}
	return true
}

// check compares the state of the lock, or adds it to the output.
func (r *rig) check(verb string, words []string) bool {
	r.T.Helper()
	switch verb {
	case "idle":
		wake, ok := r.lock.NextWake()
		r.Require(!ok && r.lock.Idle(), "the lock is not idle, and wakes at %v (%v): %s", wake, ok, dump(r.lock))
	case "wakes":
		r.wakes(words[0])
	case "last": // about a command under way
		c := r.command(words[0])
		got := fmt.Sprintf(" tokens=%d above=%v deadline=%v lease=%v maxttl=%v entry=%d behind=%d ", c.Tokens, c.Above, c.Deadline, c.Lease, c.MaxTTL, c.Entry.Term, c.Behind)
		r.Require(strings.Contains(got, " "+words[1]+" "), "%s is under way with%s", words[0], got)
	case "sees":
		s := r.lock.Snapshot()
		got := fmt.Sprintf("x%d until %v waiters %d tokens %v", s.Count, s.Until, s.Waiters, s.Tokens)
		r.Require(strings.HasPrefix(got, strings.Join(words, " ")), "the snapshot is %s", got)
	case "detail":
		r.output = append(r.output, r.detail)
	case "load":
		now := r.lock.Summary()
		r.output = append(r.output, fmt.Sprintf("%d held, %d wait", now.Holds, now.Waiters))
		if now.FirstRef != nil {
			r.output[0] += fmt.Sprint(", first ", now.FirstRef)
		}
	case "outstanding": // holders and requests without an answer
		holders, pending := r.lock.Outstanding()
		for _, h := range holders {
			r.output = append(r.output, fmt.Sprintf("%v holds", h.Ref))
		}
		for _, ref := range pending {
			r.output = append(r.output, fmt.Sprint(ref))
		}
	case "cleanup": // if the actor fails for good
		for _, c := range r.lock.CleanupCommands(r.Now) {
			r.output = append(r.output, fmt.Sprintf("%s within %v", commandSentence(c), c.MaxTTL))
		}
	default:
		return false
	}
	return true
}

// configure makes a new lock of the given kind.
func (r *rig) configure(words []string) {
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "fair":
			r.features.Fair = true
		case "readwrite":
			r.features.Shares, r.features.WaitQueue = true, true
		case "waitqueue":
			r.features.WaitQueue = true
		case "multi":
			r.features.Parts = true
		case "replicas":
			r.cfg.Replicated = true
		case "tokens":
			r.features.Tokens = int(machinetest.Number(value))
		case "linger":
			r.features.WaitQueue, r.cfg.Linger = true, machinetest.Duration(value)
		case "queue":
			r.cfg.QueueLimit = int(machinetest.Number(value))
		default: // handoff
			r.cfg.HandOffLimit = machinetest.Duration(value)
			r.cfg.ForcedYield = 2 * r.cfg.HandOffLimit
		}
	}
	r.lock = lock.New(&r.cfg, &r.features)
}
