package semaphore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

var testConfig = machine.Config{
	Watchdog: 30 * time.Second, HandOffLimit: 5 * time.Millisecond, ForcedYield: time.Second,
	Poll: time.Second, CallTimeout: 2 * time.Second, QueueLimit: 4,
}

// TestDecisions plays testdata/decisions.txt. A script begins with "# " and its name, which begins
// with "latch" if it is about one. A line is an event, and behind ">" what it brings about, with ";"
// between the effects. Before the event may stand the time that passes, "+5ms". "acquire 1 2" is the
// request 1, of owner 1, for two permits; other requests are called as the event. "ok" and "fail"
// are replies to the last command.
func TestDecisions(t *testing.T) {
	text, err := os.ReadFile("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range strings.Split(string(text), "# ")[1:] {
		name, steps, _ := strings.Cut(script, "\n")
		t.Run(name, func(t *testing.T) {
			p := player{Pool: New(&testConfig)}
			if strings.HasPrefix(name, "latch") {
				p.Pool = NewLatch(&testConfig)
			}
			for line := range strings.Lines(strings.TrimSpace(steps)) {
				event, want, _ := strings.Cut(strings.TrimSpace(line), ">")
				if got := p.play(strings.TrimSpace(event)); got != strings.TrimSpace(want) {
					t.Fatalf("%s\n got %s\nwant %s", event, got, strings.TrimSpace(want))
				}
			}
			if at, ok := p.NextWake(); ok && at <= p.at {
				t.Errorf("at %v it wants to be woken at %v", p.at, at)
			}
		})
	}
}

type player struct {
	Pool
	at     Instant
	number uint64
	sent   Command
}

func (p *player) play(event string) string {
	if after, ok := strings.CutPrefix(event, "+"); ok {
		after, event, _ = strings.Cut(after, " ")
		d, _ := time.ParseDuration(after)
		p.at += d
	}
	if !p.HasNextNumber() {
		p.number++
		p.SetNextNumber(p.number)
	}
	words := append(strings.Fields(event), "", "", "", "")
	first, _ := strconv.Atoi(words[1])
	second, _ := strconv.Atoi(words[2])
	req := Request{ID: uint64(first), Owner: machine.Owner(first), N: second, Try: slices.Contains(words, "try"), Ref: first}
	if wait, err := time.ParseDuration(words[3]); err == nil {
		req.Deadline = p.at + wait
	}
	switch words[0] {
	case "":
		if at, ok := p.NextWake(); ok && at <= p.at {
			p.Tick(p.at)
		}
	case "acquire":
		p.Acquire(p.at, req)
	case "wait":
		p.Wait(p.at, req)
	case "release":
		p.Release(p.at, first, words[2] != "", event)
	case "down":
		p.CountDown(p.at, words[1], event)
	case "add", "set", "drain", "inspect":
		p.Change(p.at, Change{Kind: CommandKind(slices.Index(kinds, words[0])), N: int64(first), Ref: event})
	case "cancel":
		p.Cancel(p.at, uint64(first), machine.Owner(second), event)
	case "dies":
		p.OwnerGone(p.at, machine.Owner(first))
	case "signal":
		p.Signal(p.at)
	case "subscribed":
		p.Subscribed(p.at)
	case "close":
		p.Close(p.at, machine.Closed, "over")
	case "stop":
		p.Stop(p.at, machine.Closed, "over")
	case "abandon":
		p.Abandon(p.at, machine.Crashed, "over")
	case "ok":
		p.Replied(p.at, p.sent.Number, Result{N: [2]int64{int64(first), int64(second)}})
	case "fail":
		p.Replied(p.at, p.sent.Number, Result{Err: errors.New("failed"), Transient: words[1] != "for-good", Unsure: words[1] == "unsure"})
	default:
		panic(event)
	}
	return p.brings()
}

var (
	kinds   = []string{Take: "take", Give: "give", Yield: "yield", Add: "add", Set: "set", Drain: "drain", Inspect: "inspect"}
	answers = []string{Granted: "granted", Returned: "returned", Changed: "changed", Withdrawn: "withdrawn", Refused: "refused"}
)

// brings says what an event brings about.
func (p *player) brings() string {
	var all []string
	for e := p.Effects(); e != nil; e = p.Effects() {
		text, a := "", e.Answer
		add := func(say bool, more ...any) {
			if say {
				text += fmt.Sprint(more...)
			}
		}
		switch e.Kind {
		case Send:
			c := *e.Command
			text = kinds[c.Kind]
			add(len(c.Wanted) > 0, " ", strings.Trim(fmt.Sprint(c.Wanted), "[]"))
			add(c.N != 0, " ", c.N)
			add(len(c.IDs) > 0, " ", strings.Join(c.IDs, " "))
			add(c.Listening, " listening")
			add(c.Forced, " forced")
			add(c.Number == p.sent.Number, " again")
			add(c.Deadline != p.at+testConfig.CallTimeout, " by ", c.Deadline)
			p.sent = c
		case Reply:
			text = fmt.Sprint(answers[a.Kind], " ", e.Ref)
			add(a.HandedOn, " in memory")
			add(!a.Done && (a.Kind == Returned || a.Kind == Changed), " in vain")
			add(a.N != 0, ": ", a.N)
			add(a.TTL != 0, " for ", a.TTL)
			add(a.Kind == Refused, ": ", a.Reason, ", ", a.Detail)
		case Subscribe, Unsubscribe:
			text = [...]string{Subscribe: "subscribe", Unsubscribe: "unsubscribe"}[e.Kind]
		case Forgotten:
			text = "forgotten: " + a.Detail
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
