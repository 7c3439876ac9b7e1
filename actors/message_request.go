package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockRequest is what the request messages have in common.
type lockRequest interface{ GetLock() *messages.Lock }

// opOf is what a request about a lock asks for; ok is false for any other message.
func opOf(m any) (op Op, ok bool) {
	switch m := m.(type) {
	case *Call:
		return m.Op, true
	case *messages.Acquire:
		return OpAcquire, true
	case *messages.Release:
		return OpRelease, true
	case *messages.ReleaseByID:
		return OpReleaseID, true
	case *messages.SetTotal:
		return OpSetPermits, true
	case *messages.Cancel:
		return OpCancel, true
	case *messages.ForceRelease:
		return OpForceRelease, true
	case *messages.Inspect:
		return OpInspect, true
	}
	return 0, false
}

// messageRequestOf is the request that a message is; nil if that is no request about a lock.
func messageRequestOf(m any, sender *actor.PID) *messageRequest {
	request, isMessage := m.(lockRequest)
	op, is := opOf(m)
	if !isMessage || !is {
		return nil
	}
	by := &messageRequest{op: op, lock: request.GetLock(), replyTo: sender}
	if acquire, ok := m.(*messages.Acquire); ok {
		by.showsPermit = acquire.GetShowPermit() // it may be nil
		if sender == nil {
			by.replyTo = acquire.GetOwner()
		}
	}
	return by
}
