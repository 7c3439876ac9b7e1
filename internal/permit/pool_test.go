package permit

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// What a refusal tells: a try behind somebody who waits is refused, too, and when he leaves, the
// next one need not be told that there are permits for him.
func TestRefusal(t *testing.T) {
	p := New(&lock.Config{Poll: time.Minute, CallTimeout: time.Second, QueueLimit: 9})
	event := func(want string, event func()) {
		t.Helper()
		p.SetNextNumber(p.nextNumber + p.call.command.Number + 1)
		event()
		got := ""
		for e := p.Effects(); e != nil; e = p.Effects() {
			switch e.Kind {
			case Send:
				got += fmt.Sprint("take ", e.Command.Wanted, " ")
			case Reply:
				got += fmt.Sprint(e.Ref, " ", e.Answer.Reason, " ")
			}
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	event("take [5] ", func() { p.Acquire(1, Request{ID: 1, N: 5, Ref: "many"}) })
	event("", func() { p.Acquire(2, Request{ID: 2, N: 1, Try: true, Ref: "try"}) })
	event("", func() { p.Acquire(3, Request{ID: 3, N: 2, Ref: "two"}) })
	event("try held ", func() { p.Replied(4, p.call.command.Number, Result{N: [2]int64{0, 3}}) })
	event("many cancelled take [2] ", func() { p.Cancel(5, 1, 0, nil) })
}
