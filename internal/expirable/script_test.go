package expirable

import (
	"errors"
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
	Watchdog: 30 * time.Second, Renewal: 10 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
	Poll: time.Second, CallTimeout: 2 * time.Second, QueueLimit: 3,
}

// TestDecisions plays the scripts in testdata; package machinetest describes their form. Lines of these scripts:
//
//	acquire 1 x3 fixed=2s -> take 1x3/2s               the request 1, of owner 1, for 3 permits, whose first id is 1
//	take: served=1 -> granted 1 by 1x3 until 1.978s    the reply; the answer, with the permits and the end of trust
//	+1s tick -> renew 1 2                              a command renews the permits 1 and 2
//	renew: valid=01 -> renewed 2 until 39.698s; lost 1: gone
//	release 1 -> give 1                                the hold of the request 1 ends; "id=1" names a permit instead
//	earlier renew: timeout                             the reply to the last renewal but one; "first" to the first
func TestDecisions(t *testing.T) {
	machinetest.Scripts(t, func(t *testing.T) *machinetest.Player {
		p := &player{
			Player: machinetest.Player{T: t}, Semaphore: New(&testConfig),
			granted: map[int]machine.Permits{7: {First: machine.PermitID{7}, N: 1}},
		}
		p.Apply = p.apply
		return &p.Player
	})
}

type player struct {
	machinetest.Player
	Semaphore
	granted  map[int]machine.Permits // the last, by its first byte
	open     int                     // how many were granted and have not ended
	sent     *Command                // the last, unless it was a renewal
	renewals []*Command
}

func (p *player) apply(words []string) (effects []string, known bool) {
	p.T.Helper()
	if words[0] == "snapshot" {
		s := p.Snapshot()
		return []string{fmt.Sprint(s.Count, s.Waiters, s.Until)}, true
	}
	if known = p.event(words); known {
		effects = p.brings()
	}
	wake, ok := p.NextWake()
	p.Require(!ok || wake > p.Now, "it wants to be woken at %v", wake)
	p.Require(!p.remembersLateEnd(), "something is over before %v", Instant(p.nextEnd))
	p.Require(len(p.holds) == p.open, "there are %d holds, and the actor knows of %d", len(p.holds), p.open)
	return effects, known
}

// event applies an event, and reports whether it is known.
func (p *player) event(words []string) bool {
	p.T.Helper()
	verb, rest := words[0], words[1:]
	first, number := "", 0
	if len(rest) > 0 {
		first = rest[0]
		number, _ = strconv.Atoi(first)
	}
	last := len(p.renewals) - 1
	if kind, ok := strings.CutSuffix(verb, ":"); ok {
		command := p.sent
		if kind == "renew" {
			command = p.renewals[last]
		}
		p.Require(kind == name(command), "the last command is not a %s: %v", kind, command)
		p.reply(command, rest)
		return true
	}
	switch verb {
	case "first":
		p.reply(p.renewals[0], rest[1:])
	case "earlier":
		p.reply(p.renewals[last-1], rest[1:])
	case "tick":
		p.Tick(p.Now)
	case "acquire":
		p.Acquire(p.Now, p.request(number, rest[1:]))
	case "release":
		if text, ok := strings.CutPrefix(first, "id="); ok {
			p.ReleaseID(p.Now, p.granted[int(machinetest.Number(text))].First, 99)
		} else {
			p.Release(p.Now, machine.Release{ID: uint64(number), Shown: slices.Contains(rest, "shown"), Ref: number})
		}
	case "extend":
		lease := time.Duration(0)
		if rest[1] != "watchdog" {
			lease = machinetest.Duration(rest[1])
		}
		p.Extend(p.Now, uint64(number), 0, lease, 99)
	case "ensure":
		p.Ensure(p.Now, uint64(number), machinetest.Duration(rest[1]), 99)
	case "cancel":
		p.Cancel(p.Now, uint64(number), machinetest.Owner(first), nil)
	case "die":
		p.OwnerGone(p.Now, machine.Owner(number))
	case "set":
		p.Set(p.Now, SetTotal, number, 99)
	case "try":
		p.Set(p.Now, SetIfUnset, number, 99)
	case "close":
		p.Close(p.Now)
	case "signal":
		p.Signal(p.Now)
	case "subscribed":
		p.Subscribed(p.Now, 0)
	default:
		return false
	}
	return true
}

// several is a permit, or "1x3": three that were acquired together.
func several(first, n int) string {
	if n == 1 {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%dx%d", first, n)
}

// request reads a request; "total" is the number of permits that it sets if there is none, and "x3" how many it wants.
func (p *player) request(id int, options []string) (req Request) {
	req.Count = 1
	options = slices.DeleteFunc(options, func(option string) bool {
		total, is := strings.CutPrefix(option, "total=")
		count, several := strings.CutPrefix(option, "x")
		switch {
		case is:
			req.Total = int(machinetest.Number(total))
		case several:
			req.Count = int(machinetest.Number(count))
		case option == "shown":
			req.Shown = true
		}
		return is || several || req.Shown && option == "shown"
	})
	req.Request = machinetest.Request(p.Now, options...)
	req.ID, req.Owner, req.Random, req.Ref = uint64(id), machine.Owner(id), machine.PermitID{byte(id)}, id
	return req
}

// reply answers a command: with what its script replies, or a failure.
func (p *player) reply(c *Command, words []string) {
	r := Result{}
	if c.Kind == Acquire {
		r.Wait = -1
	}
	for _, word := range words {
		f, failed := machinetest.Failures[word]
		switch key, value, _ := strings.Cut(word, "="); {
		case failed:
			r = Result{Failure: f}
		case word == "unconfirmed":
			r = Result{Failure: machine.Failure{Err: errors.New("unconfirmed"), Transient: true, Unconfirmed: true}}
		case word == "missing":
			r.Missing = true
		case key == "served":
			r.Served = int(machinetest.Number(value))
		case key == "wait":
			r.Wait = machinetest.Duration(value)
		case key == "valid": // a digit for each permit
			for _, digit := range value {
				r.Valid = append(r.Valid, digit == '1')
			}
		case key == "heard":
			r.Receivers = int(machinetest.Number(value))
		case key == "done":
			r.Done = value == "1"
		default:
			p.T.Fatalf("no such result: %s", word)
		}
	}
	p.Replied(p.Now, c.Seq, r)
}

// brings says what an event brings about.
func (p *player) brings() (all []string) {
	idle := p.Idle()
	for e := (machine.Effect{}); p.NextEffect(&e); {
		if idle {
			return []string{"it is idle, and has something to be done"}
		}
		text, a := "", e.Answer
		switch e.Kind {
		case machine.Send:
			text = p.sends(e.Ref.(*Command))
		case machine.Reply:
			switch a.Kind {
			case machine.Granted:
				first := int(a.Permits.First[0])
				p.granted[first] = *a.Permits
				p.open++
				text = fmt.Sprintf("granted %v by %s until %v", e.Ref, several(first, a.Permits.N), a.Until)
				if a.HandedOff {
					text = "handed off: " + text
				}
			case machine.NotGranted:
				text = fmt.Sprintf("refused %v: %v", e.Ref, a.Reason)
			case machine.Freed:
				text = fmt.Sprint("freed ", e.Ref)
				if a.HandedOff {
					text = fmt.Sprint("handed off ", e.Ref)
				}
			case machine.NotFreed:
				text = fmt.Sprintf("not freed %v: %v", e.Ref, a.Reason)
			case machine.Extended:
				text = fmt.Sprintf("extended %v until %v", e.Ref, a.Until)
			case machine.Ensured:
				text = fmt.Sprintf("ensured %v until %v", e.Ref, a.Until)
			case machine.NotDone:
				text = fmt.Sprintf("not done: %v", a.Reason)
			case machine.Changed:
				text = fmt.Sprint("changed ", a.Done)
			}
		case machine.NotifyLost:
			text = fmt.Sprintf("lost %v: %v", e.Ref, a.Reason)
		case machine.NotifyAtRisk:
			text = fmt.Sprintf("risk %v", e.Ref)
		case machine.Subscribe:
			text = "subscribe"
		case machine.Unsubscribe:
			text = "unsubscribe"
		case machine.LeaveToExpire:
			text = "leave"
		case machine.Renewed:
			text = fmt.Sprintf("renewed %v until %v", e.Ref, a.Until)
		case machine.HoldEnded:
			p.open--
			continue
		case machine.Bounded: // it follows Renewed, and wakes a drain
			continue
		}
		all = append(all, text)
	}
	return all
}

func (p *player) sends(c *Command) string {
	var text []string
	counts, ids := c.Counts, c.IDs
	if counts == nil { // by permit, and not by request or hold
		counts = slices.Repeat([]int{1}, len(ids))
	}
	for i, n := range counts {
		text = append(text, several(int(ids[0][0]), n))
		if c.Kind == Acquire {
			p.granted[int(ids[0][0])] = machine.Permits{First: ids[0], N: n} // so that its id is known
		}
		ids = ids[n:]
		if len(c.Leases) > 0 && c.Leases[i] != testConfig.Watchdog {
			text[i] += fmt.Sprint("/", c.Leases[i])
		}
	}
	if c.Kind == Renew && c.Lease != testConfig.Watchdog {
		text = append(text, fmt.Sprint("for ", c.Lease))
	}
	if within := c.Deadline - p.Now; within != testConfig.CallTimeout {
		text = append(text, fmt.Sprint("within ", within))
	}
	switch {
	case c.Kind == Renew:
		p.renewals = append(p.renewals, c)
	case p.sent != nil && p.sent.Number == c.Number:
		text = append(text, "again")
		fallthrough
	default:
		p.sent = c
	}
	if c.Kind == Set {
		text = append([]string{fmt.Sprint(c.Count)}, text...)
	}
	return strings.Join(append([]string{name(c)}, text...), " ")
}

// name is what the scripts call a command.
func name(c *Command) string {
	return [...]string{Acquire: "take", Release: "give", Renew: "renew", Set: string(c.Mode)}[c.Kind]
}
