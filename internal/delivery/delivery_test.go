package delivery

import (
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// escalations is the invoker of an actor, and keeps what is escalated to its supervisor.
type escalations []any

func (*escalations) InvokeUserMessage(any)            {}
func (*escalations) InvokeSystemMessage(any)          {}
func (e *escalations) EscalateFailure(_, message any) { *e = append(*e, message) }

// What an actor crashes over is not shown to others: a request that was answered may be another one by then.
func TestCrash_ShowsNoRequest(t *testing.T) {
	shown := &escalations{}
	(&mailbox{invoker: shown}).EscalateFailure("crash", &actor.MessageEnvelope{Message: &request.Call{}})
	if want := []any{"*request.Call"}; !slices.Equal(*shown, want) {
		t.Errorf("%v is shown, expected %v", *shown, want)
	}
}
