package kinds

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// lockKind is the Kind of all locks. It is the backend.Receiver of its Backend.
type lockKind struct {
	holding
	backend.Backend
	system *System
	actor  Actor
	// client is the client part of its owner fields.
	client string
	traits *lock.Traits
	// tokens are the counters of its fencing tokens.
	tokens tokens
	// signals says which channels matter, nil if all do.
	signals  *signals
	observer *observe.Lock
}

func (k *lockKind) Fresh() machine.Machine {
	l := lock.New(k.system.Config, k.traits)
	return &l
}

func (k *lockKind) Draft(of machine.Machine) machine.Machine {
	next := k.system.locks.Get().(*lock.Lock)
	*next = *of.(*lock.Lock)
	next.SetBuffer(k.system.buffers.Get().(*lock.Buffer))
	if !next.HasNextTerm() {
		next.SetNextTerm(k.system.NextTerm())
	}
	k.tokens.raiseLock(next)
	return next
}

func (k *lockKind) Replaced(before, after machine.Machine) {
	next := after.(*lock.Lock)
	next.Replace(before.(*lock.Lock))
	k.system.locks.Put(before)
	k.tokens.recordDrawn(next) // before a request is answered
}

func (k *lockKind) Settled(m machine.Machine) {
	if buffer := m.(*lock.Lock).TakeBuffer(); buffer != nil {
		k.system.buffers.Put(buffer)
	}
}

func (k *lockKind) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	m.(*lock.Lock).Acquire(now, req)
}

func (k *lockKind) Event(call *request.Call, hold uint64, owner machine.Owner) Event {
	if call.Op != request.OpForceRelease {
		return k.holding.Event(call, hold, owner)
	}
	return func(m machine.Machine, now machine.Instant) {
		m.(*lock.Lock).ForceRelease(now, machine.Mode(call.Mode), k.named(call.Owners), call)
	}
}

// named returns the owners that a forced release names.
func (k *lockKind) named(owners []string) (named machine.Owners) {
	for _, owner := range owners {
		named.Fields = append(named.Fields, owner)
		if client, number, _ := strings.Cut(owner, ":"); client == k.client {
			named.Term, _ = strconv.ParseUint(number, 10, 64)
		}
	}
	return named
}

func (k *lockKind) Send(c any, now machine.Instant) {
	command := *c.(*lock.Command)
	if command.Kind == lock.Acquire || command.Kind == lock.SyncQueue {
		k.observer.Tried()
	}
	if command.Kind == lock.Acquire {
		k.signals.noteTry()
		k.tokens.attachCounter()
	}
	if command.Tokens > 0 || command.Entry.Tokens > 0 {
		command.Above = k.tokens.drawAbove(command.Above)
	}
	if entry := &command.Entry; entry.Term != 0 {
		entry.Listens = k.actor.ReceivesTransfers(entry.Term)
	}
	k.Backend.Run(command, time.Now().Add(command.Deadline-now)) // for the timers of package time
}

func (k *lockKind) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	switch r.Lock.Outcome {
	case lock.Refused:
		k.observer.RepliedHeld(r.Lock.Holder)
	case lock.Failed:
		k.observer.RepliedFailed(r.Lock.Err)
	}
	r.Lock.Alone = r.Lock.Alone && k.system.Config.Linger > 0 && k.actor.ReceivesTransfers(0)
	stale := k.signals.noteReply(r.Lock.Busy)
	m.(*lock.Lock).Replied(now, r.Seq, r.Lock.Result)
	if stale {
		m.Signal(now)
	}
}

// Replied implements backend.Receiver.
func (k *lockKind) Replied(seq uint64, r backend.Reply) {
	k.actor.Replied(&Reply{To: k.actor, Seq: seq, Lock: r})
}

// Lend implements backend.Receiver.
func (k *lockKind) Lend(kind lock.CommandKind, call redisclient.Call) bool {
	return k.actor.Lend(kind == lock.Acquire || kind == lock.SyncQueue, call)
}

func (k *lockKind) Relevant(channel backend.Channel) bool { return k.signals.noteMessage(channel) }

func (k *lockKind) Inspect(deadline time.Time, done func(*messages.Status, *machine.Answer)) {
	k.Backend.Inspect(deadline, toStatus(done))
}

// toStatus returns a function that makes a Status of the state in Redis.
func toStatus(done func(*messages.Status, *machine.Answer)) func(protocol.View, error) {
	return func(v protocol.View, err error) {
		if err != nil {
			done(nil, inspectionFailed(err))
			return
		}
		done(&messages.Status{
			Locked: v.Locked, Holder: v.Holder, HoldCount: int64(v.Count), Ttl: request.Duration(v.TTL), Subscribers: int64(v.Subscribers),
			Mode: messages.Mode(v.Mode), Holders: int64(v.Holders), Owners: v.Owners,
			FreePermits: v.FreePermits, TakenPermits: v.TakenPermits, AllPermits: v.AllPermits,
		}, nil)
	}
}

// inspectionFailed returns the refusal of an Inspect.
func inspectionFailed(err error) *machine.Answer {
	reason := machine.Rejected
	if of := (*redisclient.Error)(nil); errors.As(err, &of) && of.Transient {
		reason = machine.Unavailable
	} else if errors.Is(err, protocol.ErrNoNumber) {
		reason = machine.NoPermits
	}
	return &machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: err.Error()}
}

func (k *lockKind) Gone() { k.tokens.release() }

func (k *lockKind) Cleanups(m machine.Machine) (all []Cleanup) {
	for _, command := range m.(*lock.Lock).CleanupCommands(k.system.Now()) {
		all = append(all, Cleanup{command.MaxTTL, func(done func(certain bool)) { k.CleanUp(command, done) }})
	}
	return all
}

// Late reports each command that Redis has carried out: one that did not take the lock may have added an entry to a
// queue.
func (k *lockKind) Late(r *Reply) (cleanUpAgain bool) { return r.Lock.Outcome != lock.Failed }
