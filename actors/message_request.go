package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockRequest is what the request messages have in common.
type lockRequest interface{ GetLock() *messages.Lock }

// messageRequestOf is the envelope for refusing a message before a lock has seen it; nil if
// the message is no request.
func messageRequestOf(m any, sender *actor.PID) *messageRequest {
	request, ok := m.(lockRequest)
	if !ok || !isRequest(m) {
		return nil
	}
	by := &messageRequest{lock: request.GetLock(), replyTo: sender}
	switch m := m.(type) {
	case *messages.Acquire:
		by.op = OpAcquire
		if sender == nil {
			by.replyTo = m.GetOwner()
		}
	case *messages.Release:
		by.op = OpRelease
	case *messages.ReleaseByID:
		by.op = OpReleaseID
	case *messages.SetTotal:
		by.op = OpSetPermits
	case *messages.Cancel:
		by.op = OpCancel
	case *messages.ForceRelease:
		by.op = OpForceRelease
	case *messages.Inspect:
		by.op = OpInspect
	}
	return by
}
