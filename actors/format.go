package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// SameKey reports whether locks of two kinds, if they have the same name, are one lock on
// one key in Redis.
func SameKey(a, b messages.Kind) bool { return formatOf(a) == formatOf(b) }

// kindOf is the kind of lock that a request is about.
func kindOf(m any) messages.Kind {
	switch m := m.(type) {
	case *Call:
		if m.Members != nil {
			return messages.Kind_KIND_MULTI
		}
		return m.Kind
	case lockRequest:
		return m.GetLock().GetKind()
	}
	return messages.Kind_KIND_REENTRANT
}

// fenced reports whether a hold of that kind draws fencing tokens. A MultiLock's draws
// those of its members.
func (s *lockState) fenced(kind messages.Kind) bool {
	return kind == messages.Kind_KIND_FENCED || s.kind.Parts
}

// otherFormat handles a request for another kind of lock of the same name, which Redis
// would keep in another format under the same key. It is refused while this one is in
// use; else this actor makes room for another.
//
// The request goes back to the guardian, and comes behind what that was sent meanwhile: a
// Cancel that its sender sent right behind an Acquire withdraws nothing then, and says so.
func (s *lockState) otherFormat(m any, sender *actor.PID) {
	if !s.idle() || s.owners.inUse() {
		s.accepted = m
		s.refuse(m, sender, lock.Invalid, inUse(&s.keyActor, kindWord(s.key, kindOf(m))))
		return
	}
	s.owners.forget(&s.keyActor, len(s.owners.resting))
	s.stopAlarm()
	s.rt.table.drop(&s.keyActor)
	s.leaving = &leaving{moving: true, sent: s.gate.close()}
	s.leaving.receive(s, m, sender)
}

// inUse says that the actor of a name cannot serve a request for a kind.
func inUse(c *keyActor, wanted string) string {
	is := kindWord(c.key, messages.Kind_KIND_REENTRANT)
	if s, ok := c.state.(*lockState); ok {
		is = kindWord(c.key, s.format)
	}
	return fmt.Sprintf("the name %q is in use in this system as a %s, and cannot be a %s at the same time; use another name", c.key.name, is, wanted)
}

// kindWord names a kind to people; kind is that of a lock.
func kindWord(key lockKey, kind messages.Kind) string {
	if kind, is := synchronizerKind[key.made]; is {
		return kind.LogValue().String()
	}
	return kindName[formatOf(kind)]
}

// synchronizerKind is the kind of what is no lock.
var synchronizerKind = map[composition]messages.Kind{ofSemaphore: messages.Kind_KIND_SEMAPHORE, ofLatch: messages.Kind_KIND_LATCH}

var kindName = map[messages.Kind]string{
	messages.Kind_KIND_REENTRANT:           "plain or fenced lock",
	messages.Kind_KIND_FAIR:                "fair lock",
	messages.Kind_KIND_READ_WRITE:          "read/write lock",
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: "semaphore whose permits expire",
}

// variants make the variant of a format that is not a lock's; those of locks have ofLock.
var variants = map[messages.Kind]func(s *lockState) kindAdapter{messages.Kind_KIND_EXPIRABLE_SEMAPHORE: newPermitsVariant}
