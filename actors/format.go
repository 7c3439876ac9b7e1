package actors

import (
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on
// one key in Redis.
func SameKey(a, b messages.Kind) bool { return formatOf(a) == formatOf(b) }

// otherFormat handles a request for another kind of lock of the same name, which Redis
// would keep in another format under the same key. It is refused while this one is in
// use; else this actor makes room for another.
//
// The request goes back to the guardian, and comes behind what that was sent meanwhile: a
// Cancel that its sender sent right behind an Acquire withdraws nothing then, and says so.
func (s *lockState) otherFormat(call *request.Call) {
	if !s.idle() || s.owners.inUse() {
		s.accepted = call
		s.rt.refuse(call, machine.Invalid, inUse(s, kindWord(s.key, call.LockKind())))
		return
	}
	s.owners.forget(s, len(s.owners.resting))
	s.stopAlarm()
	s.rt.table.drop(s)
	s.leaving = &leaving{moving: true, sent: s.gate.close()}
	s.leaving.receive(s, call, nil)
}

// inUse says that the actor of a name cannot serve a request for a kind.
func inUse(s *lockState, wanted string) string {
	return fmt.Sprintf("the name %q is in use in this system as a %s, and cannot be a %s at the same time; use another name", s.key.name, kindWord(s.key, s.format), wanted)
}

// kindWord names a kind to people; kind is that of a lock.
func kindWord(key lockKey, kind messages.Kind) string {
	if kind, is := synchronizerKind[key.made]; is {
		return kind.LogValue().String()
	}
	return kindName[formatOf(kind)]
}

// synchronizerKind is the kind of a synchronizer without owners.
var synchronizerKind = map[composition]messages.Kind{ofSemaphore: messages.Kind_KIND_SEMAPHORE, ofLatch: messages.Kind_KIND_LATCH}

var kindName = map[messages.Kind]string{
	messages.Kind_KIND_REENTRANT:           "plain or fenced lock",
	messages.Kind_KIND_FAIR:                "fair lock",
	messages.Kind_KIND_READ_WRITE:          "read/write lock",
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: "semaphore whose permits expire",
}

// variants make the kindAdapter of a format that is not a lock's; those of locks have lockAdapter.
var variants = map[messages.Kind]func(s *lockState) kindAdapter{
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: newPermitsVariant,
	messages.Kind_KIND_SEMAPHORE:           newSemaphoreAdapter,
	messages.Kind_KIND_LATCH:               newSemaphoreAdapter,
}
