package backend

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

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
