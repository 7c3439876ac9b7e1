package kinds

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// An Inspect is always answered: its request would wait for ever.
func TestSemaphore_RefusesAnInspect(t *testing.T) {
	answers := 0
	new(semaphoreAdapter).Inspect(time.Time{}, func(status *messages.Status, refusal *machine.Answer) {
		if answers++; status != nil || refusal.Kind != machine.NotDone || refusal.Reason != machine.Invalid {
			t.Errorf("answered %v, %v", status, refusal)
		}
	})
	if answers != 1 {
		t.Errorf("%d answers, expected 1", answers)
	}
}
