package expirable

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

var testConfig = machine.Config{
	Watchdog: 30 * time.Second, Renewal: 10 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
	Poll: time.Second, CallTimeout: 2 * time.Second, QueueLimit: 3,
}

// TestDecisions plays testdata/decisions.txt. A script begins with "# " and its name. A line is an
// event, and behind ">" what it brings about, with ";" between the effects. Before the event may
// stand the time that passes, "+5ms". "ok" and "fail" are replies to the last command, or to the
// last renewal if "renewal" stands before, or to the one before that if "earlier" does, or to the first if "first"
// does. The permit of request 1 has the id 1; its owner is 1, too.
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range strings.Split(string(text), "# ")[1:] {
		name, steps, _ := strings.Cut(script, "\n")
		t.Run(name, func(t *testing.T) {
			p := player{Semaphore: New(&testConfig), granted: map[int]machine.PermitID{7: {7}}}
			for line := range strings.Lines(strings.TrimSpace(steps)) {
				event, want, _ := strings.Cut(strings.TrimSpace(line), ">")
				got := p.play(strings.Fields(event))
				if got != strings.TrimSpace(want) {
					t.Fatalf("%s\n got %s\nwant %s", event, got, strings.TrimSpace(want))
				}
				if at, ok := p.NextWake(); ok && at <= p.at {
					t.Errorf("%s: at %v it wants to be woken at %v", event, p.at, at)
				}
				if len(p.holds) != p.open {
					t.Errorf("%s: %d holds, and the actor knows of %d", event, len(p.holds), p.open)
				}
			}
		})
	}
}

type player struct {
	Semaphore
	at       Instant
	words    []string
	granted  map[int]machine.PermitID // the last, by its first byte
	open     int                      // how many were granted and have not ended
	sent     *Command
	renewals []*Command
}

// word takes the next word of an event, "" if there is none.
func (p *player) word() (word string) {
	if len(p.words) > 0 {
		word, p.words = p.words[0], p.words[1:]
	}
	return word
}

func (p *player) number() int {
	n, err := strconv.Atoi(p.word())
	if err != nil {
		panic(err)
	}
	return n
}

func (p *player) play(words []string) string {
	if after, ok := strings.CutPrefix(words[0], "+"); ok {
		d, _ := time.ParseDuration(after)
		p.at += d
		if words = words[1:]; len(words) == 0 {
			words = []string{"tick"}
		}
	}
	p.words = words
	command := p.sent
	event := p.word()
	switch last := len(p.renewals) - 1; event {
	case "renewal":
		command, event = p.renewals[last], p.word()
	case "earlier":
		command, event = p.renewals[last-1], p.word()
	case "first":
		command, event = p.renewals[0], p.word()
	}
	switch event {
	case "tick":
		if at, ok := p.NextWake(); ok && at <= p.at {
			p.Tick(p.at)
		}
	case "acquire":
		req := Request{Request: machine.Request{ID: uint64(p.number())}}
		req.Owner, req.Random, req.Ref = machine.Owner(req.ID), machine.PermitID{byte(req.ID)}, int(req.ID)
		for option := p.word(); option != ""; option = p.word() {
			name, value, _ := strings.Cut(option, "=")
			d, _ := time.ParseDuration(value)
			switch name {
			case "try":
				req.Try = true
			case "shown":
				req.Shown = true
			case "lease":
				req.Lease = d
			case "most":
				req.MaxHold = d
			case "wait":
				req.Deadline = p.at + d
			case "of":
				req.Total, _ = strconv.Atoi(value)
			}
		}
		p.Acquire(p.at, req)
	case "release":
		id := p.number()
		p.Release(p.at, uint64(id), p.word() == "shown", id)
	case "id":
		p.ReleaseID(p.at, p.granted[p.number()], 99)
	case "cancel":
		p.Cancel(p.at, uint64(p.number()), 0, nil)
	case "withdraws":
		p.Cancel(p.at, 0, machine.Owner(p.number()), nil)
	case "snapshot":
		return fmt.Sprint(p.Snapshot())
	case "dies":
		p.OwnerGone(p.at, machine.Owner(p.number()))
	case "set":
		p.Set(p.at, Total, p.number(), 99)
	case "close":
		p.Close(p.at)
	case "signal":
		p.Signal(p.at)
	case "subscribed":
		p.Subscribed(p.at)
	case "fail":
		r := Result{Err: errors.New("failed"), Transient: true}
		switch p.word() {
		case "unsure":
			r.Unsure = true
		case "unconfirmed":
			r.Unconfirmed = true
		case "for-good":
			r.Transient = false
		}
		p.Replied(p.at, command.Seq, r)
	case "ok":
		var r Result
		switch command.Kind {
		case Acquire:
			r.Served, r.Wait = p.number(), -1
			r.Served, r.Missing = max(r.Served, 0), r.Served < 0
			r.Wait, _ = time.ParseDuration(p.word())
			if r.Wait == 0 {
				r.Wait = -1
			}
		case Release, Renew:
			for _, digit := range p.word() {
				r.Valid = append(r.Valid, digit == '1')
			}
			if command.Kind == Release {
				r.Heard = p.number()
			}
		case Set:
			r.Done = p.number() == 1
			r.Wait, _ = time.ParseDuration(p.word())
		}
		p.Replied(p.at, command.Seq, r)
	default:
		panic(event)
	}
	return p.brings()
}

// brings says what an event brings about.
func (p *player) brings() string {
	var all []string
	idle := p.Idle()
	for {
		e, ok := p.Effects()
		switch {
		case !ok:
			return strings.Join(all, "; ")
		case idle:
			return "it is idle, and has something to be done"
		}
		text, a := "", e.Answer
		switch e.Kind {
		case machine.Send:
			text = p.sends(e.Command)
		case machine.Reply:
			switch a.Kind {
			case machine.Granted:
				p.granted[int(e.Permit[0])] = e.Permit
				p.open++
				text = map[bool]string{true: "handed on: "}[a.HandedOn] + fmt.Sprintf("granted %v by %d until %v", e.Ref, e.Permit[0], a.Until)
				if a.Bound != 0 {
					text += fmt.Sprint(" at most ", a.Bound)
				}
			case machine.NotGranted:
				text = fmt.Sprintf("refused %v: %v", e.Ref, a.Reason)
			case machine.Freed:
				text = fmt.Sprint("freed ", e.Ref)
				if a.HandedOn {
					text = fmt.Sprint("handed on ", e.Ref)
				}
			case machine.NotFreed:
				text = fmt.Sprintf("not freed %v: %v", e.Ref, a.Reason)
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
		case Renewed:
			text = fmt.Sprintf("renewed %v until %v", e.Ref, a.Until)
		case machine.HoldEnded:
			p.open--
			continue
		}
		all = append(all, text)
	}
}

func (p *player) sends(c *Command) string {
	var text []string
	for i, id := range c.IDs {
		text = append(text, fmt.Sprint(id[0]))
		if len(c.Leases) > 0 && c.Leases[i] != testConfig.Watchdog {
			text[i] += fmt.Sprint("/", c.Leases[i])
		}
	}
	if within := c.Deadline - p.at; within != testConfig.CallTimeout {
		text = append(text, fmt.Sprint("within ", within))
	}
	if c.Kind == Renew {
		p.renewals = append(p.renewals, c)
		return "renew " + strings.Join(text, " ")
	}
	again := ""
	if p.sent != nil && p.sent.Number == c.Number {
		again = " again"
	}
	p.sent = c
	return strings.TrimRight([...]string{Acquire: "take ", Release: "give ", Set: fmt.Sprintf("%s %d ", c.How, c.Count)}[c.Kind]+strings.Join(text, " "), " ") + again
}
