package lock_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/machinetest"
)

// The notation of replies and effects in scripts and in the traces of worlds.

// replies are the outcomes that a script can name, besides failures. "unheld" is a refusal although the lock is free:
// another waiter is next.
var replies = map[string]lock.Result{
	"done": {Outcome: lock.Done}, "renewed": {Outcome: lock.Renewed}, "gone": {Outcome: lock.Absent}, "taken": {Outcome: lock.Absent, Taken: true},
	"refused": {Outcome: lock.Refused, Holder: "other:1"}, "unheld": {Outcome: lock.Refused},
}

// parseResult reads a reply: the TTL of another holder, tokens, and the term of this process that holds the lock ("ours"), or has
// taken it ("took").
func parseResult(words ...string) lock.Result {
	if f, ok := machinetest.Failures[words[0]]; ok {
		return lock.Result{Outcome: lock.Failed, Failure: f}
	}
	r, ok := replies[words[0]]
	if !ok {
		r, words = replies["done"], append(words, words[0])
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		token, err := strconv.ParseInt(word, 10, 64)
		switch {
		case key == "held":
			r.WasHeld = true
		case key == "freed":
			r.Freed = true
		case key == "ours", key == "took":
			r.OwnTerm = uint64(n)
		case key == "alone":
			r.Alone = true
		case key == "others":
			r.Others = int(n)
		case err == nil:
			r.Tokens = append(r.Tokens, token)
		default:
			r.TTL = machinetest.Duration(word)
		}
	}
	return r
}

var commandNames = [...]string{
	lock.Acquire: "acquire", lock.Release: "release", lock.Renew: "renew", lock.Keep: "keep", lock.Yield: "yield", lock.ForceRelease: "force",
	lock.CountWaiters: "count", lock.SyncQueue: "sync",
}

// sentence describes an effect. Terms are numbered from 1.
func sentence(e machine.Effect) string {
	a := e.Answer
	channel := ""
	if e.Term != 0 {
		channel = fmt.Sprintf(" #%d", e.Term)
	}
	switch e.Kind {
	case machine.Send:
		return commandSentence(*e.Ref.(*lock.Command))
	case machine.Reply:
		return fmt.Sprintf("%v: %s", e.Ref, answerSentence(a))
	case machine.NotifyLost:
		text := fmt.Sprintf("%v: lost, %v", e.Ref, a.Reason)
		if a.Tokens != nil {
			text += fmt.Sprintf(", tokens %v", a.Tokens)
		}
		return text
	case machine.NotifyAtRisk:
		return fmt.Sprintf("%v: at risk until %v", e.Ref, a.Until)
	case machine.HoldEnded:
		return fmt.Sprintf("%v: over", e.Ref)
	case machine.Subscribe:
		return "subscribe" + channel
	case machine.Unsubscribe:
		return "unsubscribe" + channel
	case machine.Bounded:
		return fmt.Sprintf("%v: ends at %v", e.Ref, a.Bound)
	case machine.LeaveToExpire:
		return fmt.Sprintf("left behind until %v", a.Until)
	}
	return fmt.Sprint(e)
}

func commandSentence(c lock.Command) string {
	count := fmt.Sprintf("x%d", c.Count)
	switch {
	case c.Shared > 0 && c.Count == 0:
		count = fmt.Sprintf("r%d", c.Shared)
	case c.Shared > 0:
		count += fmt.Sprintf(" r%d", c.Shared)
	}
	text := commandNames[c.Kind]
	add := func(is bool, format string, values ...any) {
		if is {
			text += fmt.Sprintf(format, values...)
		}
	}
	switch c.Kind {
	case lock.ForceRelease:
		add(c.Owners != nil, " of %s", strings.Join(c.Owners, ", "))
	case lock.SyncQueue:
		var entries []string
		for _, e := range c.Entries {
			entry := fmt.Sprintf("#%d", e.Term)
			if e.Try {
				entry += " try"
			}
			if e.Lease != scriptConfig.Watchdog {
				entry += fmt.Sprintf(" for %v", e.Lease)
			}
			entries = append(entries, entry)
		}
		add(true, " [%s] of #%d", strings.Join(entries, ", "), c.Top)
		add(c.Take, " and take")
		add(c.Term != 0, " after #%d", c.Term)
	default:
		add(true, " #%d", c.Term)
		add(c.Kind == lock.Acquire, " %s for %v", count, c.Lease)
		add(c.Kind == lock.Keep, " for %v", c.Lease)
		add(c.Kind == lock.Release && c.Count+c.Shared > 0, " to %s for %v", count, c.Lease)
		add(c.Immediate, " now")
		add(c.Notified, " notified")
		add(c.Forced, " forced")
	}
	return text
}

func answerSentence(a machine.Answer) string {
	text := [...]string{
		machine.Granted: "granted", machine.NotGranted: "refused", machine.Freed: "freed", machine.NotFreed: "not freed", machine.Withdrawn: "withdrawn",
		machine.ForceReleased: "forced", machine.Ensured: "ensured", machine.Extended: "extended", machine.NotDone: "not done",
	}[a.Kind]
	switch a.Kind {
	case machine.Granted:
		if a.HandedOff {
			text = "handed off"
		}
		if text += fmt.Sprintf(" x%d until %v", a.Count, a.Until); a.Tokens != nil {
			text += fmt.Sprintf(", tokens %v", a.Tokens)
		}
	case machine.Freed:
		if text += fmt.Sprintf(" x%d", a.Count); a.HandedOff {
			text += ", handed off"
		}
	case machine.Withdrawn, machine.ForceReleased:
		text += fmt.Sprintf(" %d", a.Count)
	case machine.Ensured, machine.Extended:
		text += fmt.Sprintf(" until %v", a.Until)
	default:
		if text += fmt.Sprintf(", %v", a.Reason); a.Kind == machine.NotGranted && a.TTL >= 0 {
			text += fmt.Sprintf(", ttl %v", a.TTL)
		}
	}
	return text
}
