package actors

import (
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// lateReply is a reply of Redis that counts how often it comes too late.
type lateReply struct{ times int }

func (l *lateReply) tooLate() { l.times++ }

// A reply that comes when the actor has stopped is settled, also one that a crash has put back.
func TestStoppedActorSettlesReplies(t *testing.T) {
	m, reply := &mailboxAdapter{stopped: &actor.PID{}}, &lateReply{}
	m.InvokeUserMessage(reply)
	m.InvokeUserMessage(&again{reply})
	if reply.times != 2 {
		t.Errorf("%d of 2 are settled", reply.times)
	}
}

// escalations is the invoker of an actor, and keeps what is escalated to its supervisor.
type escalations []any

func (*escalations) InvokeUserMessage(any)            {}
func (*escalations) InvokeSystemMessage(any)          {}
func (e *escalations) EscalateFailure(_, message any) { *e = append(*e, message) }

// What an actor crashes over is not shown to others: a request that was answered may be another one by then.
func TestACrashShowsNoRequest(t *testing.T) {
	shown := &escalations{}
	(&mailboxAdapter{invoker: shown}).EscalateFailure("crash", &actor.MessageEnvelope{Message: &request.Call{}})
	if want := []any{"*request.Call"}; !slices.Equal(*shown, want) {
		t.Errorf("%v is shown, expected %v", *shown, want)
	}
}
