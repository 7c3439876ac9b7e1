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

// lockAdapter is the Adapter of all locks. It is the backend.Receiver of its Backend.
type lockAdapter struct {
	holding
	backend.Backend
	kinds *Kinds
	actor Actor
	// client is the client part of the lock's owner fields.
	client   string
	features *lock.Features
	// tokens are the counters of the lock's fencing tokens.
	tokens tokens
	// signals says which channels matter; nil if all channels matter.
	signals  *signals
	observer *observe.Lock
}

func (a *lockAdapter) Fresh() machine.Machine {
	l := lock.New(a.kinds.Config, a.features)
	return &l
}

func (a *lockAdapter) Draft(of machine.Machine) machine.Machine {
	next := a.kinds.locks.Get().(*lock.Lock)
	*next = *of.(*lock.Lock)
	next.SetBuffer(a.kinds.buffers.Get().(*lock.Buffer))
	if !next.HasNextTerm() {
		next.SetNextTerm(a.kinds.NextTerm())
	}
	a.tokens.raiseLock(next)
	return next
}

func (a *lockAdapter) Replaced(before, after machine.Machine) {
	next := after.(*lock.Lock)
	next.Replace(before.(*lock.Lock))
	a.kinds.locks.Put(before)
	a.tokens.recordDrawn(next) // before a request is answered
}

func (a *lockAdapter) Settled(m machine.Machine) {
	if buffer := m.(*lock.Lock).TakeBuffer(); buffer != nil {
		a.kinds.buffers.Put(buffer)
	}
}

func (a *lockAdapter) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	m.(*lock.Lock).Acquire(now, req)
}

func (a *lockAdapter) Event(call *request.Call, hold uint64, owner machine.Owner) Event {
	if call.Op != request.OpForceRelease {
		return a.holding.Event(call, hold, owner)
	}
	return func(m machine.Machine, now machine.Instant) {
		m.(*lock.Lock).ForceRelease(now, machine.Mode(call.Mode), a.named(call.Owners, m.Summary().Term), call)
	}
}

// named returns the owners that a forced release names. Its Term is the present term if an owner of that term is named:
// all other terms are over.
func (a *lockAdapter) named(owners []string, present uint64) (named machine.Owners) {
	for _, owner := range owners {
		named.Fields = append(named.Fields, owner)
		if client, number, _ := strings.Cut(owner, ":"); client == a.client {
			if term, _ := strconv.ParseUint(number, 10, 64); named.Term == 0 || term == present {
				named.Term = term
			}
		}
	}
	return named
}

func (a *lockAdapter) Send(c any, now machine.Instant) {
	command := *c.(*lock.Command)
	if command.Kind == lock.Acquire || command.Kind == lock.SyncQueue {
		a.observer.Tried()
	}
	if command.Kind == lock.Acquire {
		a.signals.noteTry()
		a.tokens.attachCounter()
	}
	if command.Tokens > 0 || command.Entry.Tokens > 0 {
		command.Above = a.tokens.drawAbove(command.Above)
	}
	if entry := &command.Entry; entry.Term != 0 {
		entry.Listens = a.actor.ReceivesTransfers(entry.Term)
	}
	a.Backend.Run(command, time.Now().Add(command.Deadline-now)) // by the clock of package time, for its timers
}

func (a *lockAdapter) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	switch r.Lock.Outcome {
	case lock.Refused:
		a.observer.RepliedHeld(r.Lock.Holder)
	case lock.Failed:
		a.observer.RepliedFailed(r.Lock.Err)
	}
	r.Lock.Alone = r.Lock.Alone && a.kinds.Config.Linger > 0 && a.actor.ReceivesTransfers(0)
	stale := a.signals.noteReply(r.Lock.Busy)
	m.(*lock.Lock).Replied(now, r.Seq, r.Lock.Result)
	if stale {
		m.Signal(now)
	}
}

// Replied implements backend.Receiver.
func (a *lockAdapter) Replied(seq uint64, r backend.Reply) {
	a.actor.Replied(&Reply{To: a.actor, Seq: seq, Lock: r})
}

// Lend implements backend.Receiver.
func (a *lockAdapter) Lend(kind lock.CommandKind, call redisclient.Call) bool {
	return a.actor.Lend(kind == lock.Acquire || kind == lock.SyncQueue, call)
}

func (a *lockAdapter) NoteMessage(channel backend.Channel) bool {
	return a.signals.noteMessage(channel)
}

func (a *lockAdapter) Inspect(deadline time.Time, done func(*messages.Status, *machine.Answer)) {
	a.Backend.Inspect(deadline, toStatus(done))
}

// toStatus returns a function that converts the state in Redis to a Status.
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

func (a *lockAdapter) Gone() { a.tokens.release() }

func (a *lockAdapter) Cleanups(m machine.Machine) (all []Cleanup) {
	for _, command := range m.(*lock.Lock).CleanupCommands(a.kinds.Now()) {
		all = append(all, Cleanup{command.MaxTTL, func(done func(certain bool)) { a.CleanUp(command, done) }})
	}
	return all
}

// Late reports each command that Redis has carried out, since a command that did not take the lock may have added an
// entry to a queue.
func (a *lockAdapter) Late(r *Reply) (cleanUpAgain bool) { return r.Lock.Outcome != lock.Failed }
