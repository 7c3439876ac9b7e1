package actors

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// lending is a cell that handles a call of a goroutine that may be lent a command.
func lending() (*cell, *Call) {
	call := &Call{lends: true}
	c := &cell{rt: &Runtime{}, lender: call}
	return c, call
}

// A caller that has its answer leaves: a command that is lent to it would never be run.
func TestNothingIsLentToACallerThatIsAnswered(t *testing.T) {
	command, job := core.Command{Kind: core.Acquire}, redisio.Call{}
	for what, look := range map[string]bool{"and has not looked": false, "and has left with it": true} {
		t.Run(what, func(t *testing.T) {
			c, call := lending()
			next := core.New(&core.Config{}, &core.Kind{})
			c.lock = &next
			call.put(Outcome{Answer: core.Answer{Kind: core.NotGranted}})
			if look {
				if _, _, answered := call.slot.take(nil); !answered {
					t.Fatal("no answer")
				}
			}
			if c.lent(&command, &job) {
				t.Error("the command was lent")
			}
			if n := c.rt.lenders.Load(); n != 0 {
				t.Errorf("%d callers count as running a command", n)
			}
		})
	}
}

// A command that was lent to a caller whose answer came before it looked is handed back:
// the caller leaves at once, and a worker runs the command.
func TestWhatWasLentIsHandedBackWithTheAnswer(t *testing.T) {
	var s slot
	job := &loan{}
	if !s.lend(job, false) || s.lend(&loan{}, false) {
		t.Fatal("one command at a time is lent")
	}
	if unrun, taken := s.put(Outcome{}); unrun != job || !taken {
		t.Error("the command was not handed back")
	}
	if job, _, answered := s.take(nil); job != nil || !answered {
		t.Error("the caller was lent a command, and has its answer")
	}
}

// An answer that comes after its caller has left is not taken, and whoever brings it is told.
func TestAnswerForACallerThatHasLeft(t *testing.T) {
	var early, late slot
	early.put(Outcome{Owner: 7})
	if out := early.leave(); out.Owner != 7 {
		t.Errorf("the answer that had come is %+v", out)
	}
	if out := late.leave(); out.Owner != 0 {
		t.Errorf("an answer out of nowhere: %+v", out)
	}
	if _, taken := late.put(Outcome{}); taken {
		t.Error("the answer counts as taken, and nobody will look at it")
	}
}
