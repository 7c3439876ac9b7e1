package actors

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
)

// An answer finds its caller before it looks and while it waits, and one that comes at the last moment is
// taken, too. Who brings an answer too late, or another one, is told that nobody takes it.
func TestAnswerToAPermitCall(t *testing.T) {
	first, other := semaphore.Answer{Kind: semaphore.Granted, N: 3}, semaphore.Answer{Kind: semaphore.Refused}
	over := make(chan struct{})
	close(over)
	for when, answered := range map[string]func(call *PermitCall) bool{
		"before the caller looks": func(call *PermitCall) bool { return call.complete(&first) && call.await(nil) && call.await(over) },
		"while it waits": func(call *PermitCall) bool {
			taken := make(chan bool)
			go func() {
				for call.progress.Load() != callAwaited {
				}
				taken <- call.complete(&first)
			}()
			return call.await(nil) && <-taken
		},
		"at the last moment": func(call *PermitCall) bool { return !call.await(over) && call.complete(&first) && !call.leave() },
	} {
		call := &PermitCall{}
		if !answered(call) || call.answer != first {
			t.Errorf("%s: the answer is %+v", when, call.answer)
		}
		if call.complete(&other) || call.answer != first {
			t.Errorf("%s: another answer counts as taken", when)
		}
	}
	if call := (&PermitCall{}); call.await(over) || !call.leave() || call.complete(&first) {
		t.Error("the answer counts as taken, and nobody will look at it")
	}
}
