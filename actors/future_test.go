package actors

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// helped is a lockActor that handles a call of a goroutine that may run a command.
func helped() (*lockActor, *request.Call) {
	call := &request.Call{RunsErrands: true}
	a := &lockActor{rt: &Runtime{redis: &redisclient.Redis{}}, helper: call}
	return a, call
}

// A caller that has its answer leaves: a command that is lent to it would never be run.
func TestLend_NothingToACallerThatIsAnswered(t *testing.T) {
	for what, look := range map[string]bool{"and has not looked": false, "and has left with it": true} {
		t.Run(what, func(t *testing.T) {
			a, call := helped()
			next := lock.New(&machine.Config{}, &lock.Features{})
			a.machine = &next
			call.Complete(&request.Outcome{Answer: machine.Answer{Kind: machine.NotGranted}})
			if look {
				if _, answer := call.Future.Await(nil); answer == nil {
					t.Fatal("no answer")
				}
			}
			if a.Lend(true, redisclient.Call{}) {
				t.Error("the command was lent")
			}
			for range 16 {
				if a.rt.redis.Errand(redisclient.Call{}) == nil {
					t.Fatal("the caller counts as running a command")
				}
			}
		})
	}
}

// A command that was lent to a caller whose answer came before it looked is handed back:
// the caller leaves at once, and a worker runs the command.
func TestLend_IsHandedBackWithTheAnswer(t *testing.T) {
	var s request.Future
	first := &redisclient.Errand{}
	if !s.Offer(first, false) || s.Offer(&redisclient.Errand{}, false) {
		t.Fatal("one command at a time is lent")
	}
	if unrun, taken := s.Complete(&request.Outcome{}); unrun != first || !taken {
		t.Error("the command was not handed back")
	}
	if errand, answer := s.Await(nil); errand != nil || answer == nil {
		t.Error("the caller was lent a command, and has its answer")
	}
}

// An answer that comes after its caller has left is not taken, and its sender learns so.
func TestAnswer_IsNotTakenAfterTheCallerHasLeft(t *testing.T) {
	var early, late request.Future
	early.Complete(&request.Outcome{Owner: 7})
	if out := early.Leave(); out.Owner != 7 {
		t.Errorf("the answer that had come is %+v", out)
	}
	if out := late.Leave(); out.Owner != 0 {
		t.Errorf("an answer out of nowhere: %+v", out)
	}
	if _, taken := late.Complete(&request.Outcome{}); taken {
		t.Error("the answer counts as taken, and no caller will look at it")
	}
}
