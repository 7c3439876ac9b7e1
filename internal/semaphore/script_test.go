package semaphore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

var testConfig = machine.Config{
	Watchdog: 30 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
	Poll: time.Second, CallTimeout: 2 * time.Second, QueueLimit: 4,
}

// TestDecisions plays the scripts in testdata; package machinetest describes their form. Lines of a semaphore's scripts:
//
//	acquire 1 permits=2 -> take 2           the request 1, of owner 1, for two permits; a command takes them
//	take: served=1 free=5 -> granted 1: 2   the reply, with its numbers; the answer, with how many it got
//	release 1 -> give 1                     one permit is released; the answer is "returned release 1"
//	unawaited add 1 -> add 1                no request awaits the answer
//	latch                                   set up: a latch instead of a semaphore; "down" counts it down
func TestDecisions(t *testing.T) {
	machinetest.Scripts(t, func(t *testing.T) *machinetest.Player {
		p := &player{Player: machinetest.Player{T: t}, Pool: New(&testConfig)}
		p.Apply = p.apply
		return &p.Player
	})
}

type player struct {
	machinetest.Player
	Pool
	latch  bool
	number uint64
	sent   Command
}

func (p *player) apply(words []string) (effects []string, known bool) {
	p.T.Helper()
	if !p.HasNextNumber() {
		p.number++
		p.SetNextNumber(p.number)
	}
	if known = p.event(words); known {
		effects = p.brings()
	}
	wake, ok := p.NextWake()
	p.Require(!ok || wake > p.Now, "it wants to be woken at %v", wake)
	return effects, known
}

// event applies an event, and reports whether it is known.
func (p *player) event(words []string) bool {
	p.T.Helper()
	event := any(strings.Join(words, " "))
	if words[0] == "unawaited" {
		words, event = words[1:], nil
	}
	verb, rest := words[0], words[1:]
	first, number := "", 0
	if len(rest) > 0 {
		first = rest[0]
		number, _ = strconv.Atoi(first)
	}
	if kind, ok := strings.CutSuffix(verb, ":"); ok {
		p.Require(kind == kinds[p.sent.Kind], "the last command is not a %s: %v", kind, p.sent)
		p.Replied(p.Now, p.sent.Number, p.result(rest))
		return true
	}
	switch verb {
	case "latch":
		p.latch, p.Pool = true, NewLatch(&testConfig)
	case "transferred":
		p.Asked(p.Now, 0)
	case "tick":
		p.Tick(p.Now)
	case "acquire", "wait":
		p.Acquire(p.Now, p.request(number, rest[1:]))
	case "release":
		p.Release(p.Now, number, slices.Contains(rest, "if-exists"), event)
	case "down":
		p.CountDown(p.Now, first, event)
	case "add", "set", "drain", "inspect":
		p.Change(p.Now, Change{Kind: CommandKind(slices.Index(kinds, verb)), N: int64(number), Ref: event})
	case "cancel":
		p.Cancel(p.Now, uint64(number), machinetest.Owner(first), event)
	case "die":
		p.OwnerGone(p.Now, machine.Owner(number))
	case "signal":
		p.Signal(p.Now)
	case "subscribed":
		p.Subscribed(p.Now, 0)
	case "close":
		p.Close(p.Now)
	case "stop":
		p.Stop(p.Now, machine.Closed, "over")
	case "abandon":
		p.Abandon(p.Now, machine.Crashed, "over")
	default:
		return false
	}
	return true
}

// request reads a request; "permits" is the number of permits that it wants, if that is not one.
func (p *player) request(id int, options []string) Request {
	n := 1
	options = slices.DeleteFunc(options, func(option string) bool {
		value, is := strings.CutPrefix(option, "permits=")
		if is {
			n = int(machinetest.Number(value))
		}
		return is
	})
	req := Request{Request: machinetest.Request(p.Now, options...), N: n}
	req.ID, req.Owner, req.Ref = uint64(id), machine.Owner(id), id
	return req
}

// result reads the reply to the last command: the names of its two numbers, or a failure.
func (p *player) result(words []string) (r Result) {
	if f, ok := machinetest.Failures[words[0]]; ok {
		return Result{Failure: f}
	}
	names := [...][2]string{
		Take: {"served", "free"}, Give: {"done", "free"}, Yield: {"done", "free"}, Add: {"done", "free"}, Set: {"done", "free"},
		Drain: {"taken"}, Inspect: {"free", "ttl"},
	}[p.sent.Kind]
	if p.latch {
		names = [2]string{"count"}
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if word == "missing" {
			name, value = names[0], "-2"
		}
		i := slices.Index(names[:], name)
		n, err := strconv.ParseInt(value, 10, 64)
		p.Require(i >= 0 && err == nil, "no result of a %s: %s", kinds[p.sent.Kind], word)
		r.N[i] = n
	}
	return r
}

var (
	kinds = []string{
		Take: "take", Give: "give", Yield: "yield", Add: "add", Set: "set", Drain: "drain", Delete: "delete", Inspect: "inspect",
	}
	answers = []string{
		machine.Granted: "granted", machine.Freed: "returned", machine.Changed: "changed", machine.Withdrawn: "withdrawn",
		machine.NotGranted: "refused", machine.NotFreed: "refused", machine.NotDone: "refused",
	}
)

// brings says what an event brings about.
func (p *player) brings() (all []string) {
	for e := (machine.Effect{}); p.NextEffect(&e); {
		text, a := "", e.Answer
		add := func(say bool, more ...any) {
			if say {
				text += fmt.Sprint(more...)
			}
		}
		switch e.Kind {
		case machine.Send:
			c := *e.Ref.(*Command)
			text = kinds[c.Kind]
			add(len(c.Wanted) > 0, " ", strings.Trim(fmt.Sprint(c.Wanted), "[]"))
			add(c.N != 0, " ", c.N)
			add(len(c.IDs) > 0, " ", strings.Join(c.IDs, " "))
			add(c.Kind == Take && c.Wanted == nil && !p.latch, " nothing")
			add(c.Leaves, " leaving")
			add(c.Forced, " forced")
			add(c.Number == p.sent.Number, " again")
			add(c.Deadline != p.Now+testConfig.CallTimeout, " by ", c.Deadline)
			p.sent = c
		case machine.Reply:
			text = fmt.Sprint(answers[a.Kind], " ", e.Ref)
			add(a.HandedOff, " in memory")
			add(!a.Done && (a.Kind == machine.Freed || a.Kind == machine.Changed), " in vain")
			add(a.N != 0, ": ", a.N)
			add(a.Count != 0, ": ", a.Count)
			add(a.TTL != 0, " for ", a.TTL)
			add(a.Reason != 0, ": ", a.Reason, ", ", a.Detail)
		case machine.Subscribe:
			text = "subscribe"
		case machine.Unsubscribe:
			text = "unsubscribe"
		case machine.Forgotten:
			text = "forgotten: " + a.Detail
		case machine.ReturnRejected:
			text = "owing: " + a.Detail
		}
		all = append(all, text)
	}
	return all
}
