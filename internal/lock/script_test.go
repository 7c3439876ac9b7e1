package lock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// scriptConfig is the configuration of the scripts. The margin of its lease is 102 ms.
var scriptConfig = machine.Config{
	Watchdog: 10 * sec, Renewal: 3 * sec, HandOffLimit: 100 * ms, ForcedYield: sec, Poll: sec, CallTimeout: sec, QueueLimit: 200,
}

// TestDecisions plays the scripts in testdata:
//
//	# hand-off with a message         the name of a test
//	held owner=7 fixed=2s | acquire b shared try, c
//	10ms release a -> a: over; release #1 | release: done -> A: freed x0; idle
//	wake 25ms..50ms -> ...
//
// Events are separated by bars. Here client a asks at 0 and holds the lock from 2 ms on, and b and c ask
// for it; a releases it at 10 ms; Redis replies to the last release; and a Tick comes when the lock needs
// one. The text after an arrow is the expected output of the lock; without an arrow, there must be none.
// "..." stands for any output, also of the earlier events of its line, and an asterisk for any text;
// "idle" checks that the lock has nothing left to do. A time with a plus counts from now.
//
// Other setups are "lock" with its kind, "asking", "refused", "yielding", and "held twice"; a line that
// begins with one starts with a new lock. Every event is applied to a copy first, and must not change the
// original.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			number := 1
			for _, script := range strings.SplitAfter("\n"+string(text), "\n# ")[1:] {
				name, lines, _ := strings.Cut(strings.TrimSuffix(script, "\n# "), "\n")
				first := number + 1
				number += strings.Count(script, "\n")
				t.Run(name, func(t *testing.T) {
					r := newRig(t, lock.Kind{})
					for i, line := range strings.Split(lines, "\n") {
						if line == "" || strings.HasPrefix(line, "//") {
							continue
						}
						if setups.MatchString(line) {
							r = newRig(t, lock.Kind{})
						}
						r.at = fmt.Sprintf("%s:%d: ", file, first+i)
						r.play(line)
					}
				})
			}
		})
	}
}

// setups matches the start of a line that begins with a new lock.
var setups = regexp.MustCompile(`^(lock|asking|held|refused|yielding)\b`)

// play runs lines of a script.
func (r *rig) play(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		parts := strings.Split(line, " | ")
		wants := make([]string, len(parts))
		for i, part := range slices.Backward(parts) {
			answered := false
			if parts[i], wants[i], answered = strings.Cut(part, " -> "); !answered && i+1 < len(parts) && wants[i+1] == "..." {
				wants[i] = "..."
			}
		}
		for i, event := range parts {
			r.output = nil
			if !r.event(strings.Fields(event)) {
				r.t.Fatalf("%sunknown event: %s", r.at, event)
			}
			want, idle := strings.CutSuffix(wants[i], "; idle")
			want = relative.ReplaceAllStringFunc(want, func(text string) string {
				at, _ := r.parseTime(text)
				return at.String()
			})
			if got := strings.Join(r.output, "; "); !matches(want, got) {
				r.t.Fatalf("%s%s\nat %v the output is\n\t%s", r.at, event, r.now, strings.ReplaceAll(got, "; ", "\n\t"))
			}
			if idle {
				r.check("idle", nil)
			}
		}
	}
}

// relative matches a time that counts from now.
var relative = regexp.MustCompile(`\+[0-9.]+m?s\b`)

// matches reports whether a text matches a pattern, in which an asterisk stands for any text.
func matches(pattern, text string) bool {
	if pattern == "..." {
		return true
	}
	first, rest, any := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !any || !ok {
		return ok && text == ""
	}
	for i := range len(text) + 1 {
		if matches(rest, text[i:]) {
			return true
		}
	}
	return false
}

// event applies an event, and reports whether it is known.
func (r *rig) event(words []string) bool {
	r.t.Helper()
	if at, ok := r.parseTime(words[0]); ok {
		r.now, words = at, words[1:]
	}
	verb, rest := words[0], words[1:]
	if kind, ok := strings.CutSuffix(verb, ":"); ok {
		r.reply(r.command(kind), parseResult(rest))
		return true
	}
	switch verb {
	case "first": // reply to the first such command instead of the last
		slices.Reverse(r.sent)
		r.reply(r.command(strings.TrimSuffix(rest[0], ":")), parseResult(rest[1:]))
		return true
	case "again": // a second reply to the command that was answered last
		r.reply(r.answered, parseResult(rest[1:]))
		return true
	case "fail": // every command until a time
		end, _ := r.parseTime(rest[0])
		for wake := r.now; wake < end; wake = r.wakes() {
			if r.tick(wake); len(r.sent) > 0 {
				r.event(rest[1:])
			}
		}
		return true
	}
	for one := range strings.SplitSeq(strings.Join(rest, " "), ",") {
		words := strings.Fields(one)
		if !r.setUp(verb, words) && !r.request(verb, words) && !r.check(verb, words) {
			return false
		}
	}
	return true
}

// setUp configures the lock, or brings it into a state and discards the output.
func (r *rig) setUp(verb string, words []string) bool {
	r.t.Helper()
	acquire := "acquire:"
	if r.kind.Queued {
		acquire = "sync:"
	}
	switch verb {
	case "lock":
		r.configure(words)
	case "asking":
		r.acquire("a", words...)
	case "held":
		options := strings.Replace(strings.Join(words, " "), "twice", "owner=7", 1)
		r.play("asking "+options+" -> ...", "2ms "+acquire+" done took=1 -> ...")
		if slices.Contains(words, "twice") {
			r.play("acquire again owner=7 | acquire: done -> ...")
		}
	case "refused": // before and after its subscription is confirmed
		r.play("asking "+strings.Join(words, " ")+" -> ...", "2ms acquire: refused 8s | subscribed | 4ms acquire: refused 8s -> ...")
	case "yielding": // the hand-off limit is over, and b and c wait
		r.play("held | acquire b, c | 150ms release a -> a: over; yield #1")
	default:
		return false
	}
	r.output = nil
	return true
}

// request applies an event that comes from a client, a message or a timer.
func (r *rig) request(verb string, words []string) bool {
	r.t.Helper()
	first := ""
	if len(words) > 0 {
		first = words[0]
	}
	id, owner := r.ids[first], machine.Owner(0)
	if text, ok := strings.CutPrefix(first, "owner="); ok {
		owner = machine.Owner(number(text))
	}
	mode := machine.Exclusive
	if verb == "leave" || first == "shared" {
		mode = machine.Shared
	}
	switch verb {
	case "acquire":
		r.acquire(first, words[1:]...)
	case "release", "leave":
		r.do(func(l *lock.Lock) { l.Release(r.now, id, owner, mode, strings.ToUpper(first)) })
	case "cancel":
		r.do(func(l *lock.Lock) { l.Cancel(r.now, id, owner, "cancel") })
	case "ensure":
		r.do(func(l *lock.Lock) { l.Ensure(r.now, id, duration(words[1]), "ensure") })
	case "die":
		r.do(func(l *lock.Lock) { l.OwnerGone(r.now, machine.Owner(number(first))) })
	case "force":
		var owners machine.Owners // "#1" is an own term, and any other word except "shared" is an owner of another process
		for _, word := range words {
			if term, own := strings.CutPrefix(word, "#"); own {
				owners.Term = number(term)
			}
			if word != "shared" {
				owners.Fields = append(owners.Fields, word)
			}
		}
		r.do(func(l *lock.Lock) { l.ForceRelease(r.now, mode, owners, "force") })
	case "close":
		r.do(func(l *lock.Lock) { l.Close(r.now) })
	case "signal":
		r.do(func(l *lock.Lock) { l.Signal(r.now) })
	case "transferred":
		transfer := machine.Transfer{Term: number(strings.TrimPrefix(first, "#")), Seq: number(words[2])}
		if len(words) > 3 {
			transfer.Tokens = []int64{int64(number(words[3]))}
		}
		r.do(func(l *lock.Lock) { l.Transferred(r.now, transfer) })
	case "suspect":
		r.do(func(l *lock.Lock) { l.Suspect(r.now) })
	case "subscribed":
		r.do(func(l *lock.Lock) { l.Subscribed(r.now, number("0"+strings.TrimPrefix(first, "#"))) })
	case "tick":
		r.tick(r.now)
	case "sleep":
		end, _ := r.parseTime(first)
		r.sleep(end)
	case "wake":
		r.tick(max(r.wakes(words...), r.now))
	default:
		return false
	}
	return true
}

// check compares the state of the lock, or adds it to the output.
func (r *rig) check(verb string, words []string) bool {
	r.t.Helper()
	switch verb {
	case "idle":
		wake, ok := r.lock.NextWake()
		r.require(!ok && r.lock.Idle(), "the lock is not idle, and wakes at %v (%v): %s", wake, ok, dump(r.lock))
	case "wakes":
		r.wakes(words[0])
	case "last": // about a command under way
		c := r.command(words[0])
		got := fmt.Sprintf(" tokens=%d above=%v deadline=%v lease=%v maxttl=%v entry=%d behind=%d ", c.Tokens, c.Above, c.Deadline, c.Lease, c.MaxTTL, c.Entry.Term, c.Behind)
		r.require(strings.Contains(got, " "+words[1]+" "), "%s is under way with%s", words[0], got)
	case "sees":
		s := r.lock.Snapshot()
		got := fmt.Sprintf("x%d until %v waiters %d tokens %v", s.Count, s.Until, s.Waiters, s.Tokens)
		r.require(strings.HasPrefix(got, strings.Join(words, " ")), "the snapshot is %s", got)
	case "detail":
		r.output = append(r.output, r.detail)
	case "load":
		holds, waiters, first := r.lock.Load()
		r.output = append(r.output, fmt.Sprintf("%d held, %d wait", holds, waiters))
		if first != nil {
			r.output[0] += fmt.Sprint(", first ", first)
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
		for _, c := range r.lock.CleanupCommands(r.now) {
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
			r.kind.Queued = true
		case "readwrite":
			r.kind.Shares, r.kind.WaitQueue = true, true
		case "waitqueue":
			r.kind.WaitQueue = true
		case "multi":
			r.kind.Parts = true
		case "tokens":
			r.kind.Tokens = int(number(value))
		case "queue":
			r.cfg.QueueLimit = int(number(value))
		default: // handoff
			r.cfg.HandOffLimit = duration(value)
			r.cfg.ForcedYield = 2 * r.cfg.HandOffLimit
		}
	}
	r.lock = lock.New(&r.cfg, &r.kind)
}

// parseTime reads a time; with a plus it counts from now.
func (r *rig) parseTime(text string) (machine.Instant, bool) {
	at, err := time.ParseDuration(text)
	if strings.HasPrefix(text, "+") {
		at += r.now
	}
	return at, err == nil
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
