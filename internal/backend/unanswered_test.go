package backend

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// A command is sent again only if that undoes no later one, and is not the last of its term then.
func TestUnanswered_BeginsAgainWhatUndoesNothing(t *testing.T) {
	last := lock.Command{Term: 7, Lease: time.Minute, Count: 2}
	for what, again := range map[string]struct {
		c   lock.Command
		may bool
	}{
		"the last": {last, true}, "for longer": {lock.Command{Term: 7, Lease: time.Hour, Count: 2}, true},
		"for less": {lock.Command{Term: 7, Lease: time.Second, Count: 2}, false}, "another count": {lock.Command{Term: 7, Lease: time.Minute, Count: 1}, false},
		"of an earlier term": {lock.Command{Term: 6, Lease: time.Minute, Count: 2}, false},
	} {
		u := new(unanswered)
		u.end(&last, u.begin(&last), outcome(lock.Done))
		if _, may := u.beginAgain(&again.c); may != again.may || len(u.underWay) > 0 != may || u.lease != last.Lease || u.count != last.Count {
			t.Errorf("%s: it may: %v, and %+v", what, may, u)
		}
	}
}

// A lease counts unless a command of its term, for a shorter one, may be carried out later: one without a reply, or one
// that was under way when it was sent, in whatever order the replies come.
func TestUnanswered_DiscountsWhatMayBeCutShort(t *testing.T) {
	command := func(term uint64, lease time.Duration) *lock.Command { return &lock.Command{Term: term, Lease: lease} }
	short, long, next := command(1, time.Second), command(1, time.Minute), command(2, time.Minute)
	done := Reply{Result: lock.Result{Outcome: lock.Done}}
	lost := Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Unsure: true}}}
	for _, test := range []struct {
		what      string
		earlier   *lock.Command
		reply     Reply
		ended     string // when the reply to the earlier command comes: "before", "meanwhile" or "after"
		c         *lock.Command
		discounts bool
	}{
		{"answered before", short, done, "before", long, false},
		{"lost before", short, lost, "before", long, true},
		{"answered first", short, done, "meanwhile", long, true},
		{"lost first", short, lost, "meanwhile", long, true},
		{"answered last", short, done, "after", long, true},
		{"as long", long, lost, "after", long, false},
		{"longer", long, lost, "meanwhile", short, false},
		{"of an earlier term", short, lost, "meanwhile", next, false},
	} {
		u := new(unanswered)
		before := u.begin(test.earlier)
		end := func(when string) {
			if when == test.ended {
				u.end(test.earlier, before, test.reply)
			}
		}
		end("before")
		sent := u.begin(test.c)
		end("meanwhile")
		if r := u.end(test.c, sent, done); (r.Outcome == lock.Failed) != test.discounts {
			t.Errorf("%s: the outcome is %v", test.what, r.Outcome)
		}
		end("after")
		if len(u.underWay) > 0 {
			t.Errorf("%s: %v are under way", test.what, u.underWay)
		}
		again := u.begin(test.c)
		if r := u.end(test.c, again, done); (r.Outcome == lock.Failed) != (test.discounts && test.reply.Unsure) {
			t.Errorf("%s: then %v", test.what, r.Outcome)
		}
	}
}
