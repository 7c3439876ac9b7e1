package kinds

import (
	"crypto/rand"
	"time"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// expirableKind is the Kind of expirable semaphores.
type expirableKind struct {
	holding
	*backend.ExpirableSemaphore
	system *System
	actor  Actor
	// idPrefix is the beginning of the ids of its permits.
	idPrefix [8]byte
}

func newExpirable(s *System, name string, a Actor) Kind {
	id, _ := uuid.Parse(s.ID)
	return expirableKind{
		ExpirableSemaphore: backend.NewExpirableSemaphore(s.Server, name, s.ID), system: s, actor: a, idPrefix: [8]byte(id[:8]),
	}
}

func (k expirableKind) Fresh() machine.Machine {
	s := expirable.New(k.system.Config)
	return &s
}

func (k expirableKind) Draft(of machine.Machine) machine.Machine {
	next := *of.(*expirable.Semaphore)
	return &next
}

func (k expirableKind) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	call := req.Ref.(*request.Call)
	m.(*expirable.Semaphore).Acquire(now, expirable.Request{
		Request: req, Random: k.newPermitID(),
		Count: call.PermitsTogether(), Shown: call.ShowsPermit(), Total: call.TotalPermits(),
	})
}

// newPermitID makes an id that begins with the System (see keyspace.PermitSystemOf), so that a reader knows which process
// has the permit. The rest is random: 64 bits, which cannot be guessed.
func (k expirableKind) newPermitID() (id machine.PermitID) {
	n := copy(id[:], k.idPrefix[:])
	_, _ = rand.Read(id[n:]) // it never fails
	return id
}

var setModes = map[messages.SetPermitsHow]expirable.SetMode{
	messages.SetPermitsHow_SET_PERMITS_HOW_TRY:    expirable.SetIfUnset,
	messages.SetPermitsHow_SET_PERMITS_HOW_TOTAL:  expirable.SetTotal,
	messages.SetPermitsHow_SET_PERMITS_HOW_ADD:    expirable.SetAdd,
	messages.SetPermitsHow_SET_PERMITS_HOW_DELETE: expirable.Delete,
}

func (k expirableKind) Event(call *request.Call, hold uint64, owner machine.Owner) Event {
	switch call.Op {
	case request.OpReleaseID:
		return func(m machine.Machine, now machine.Instant) {
			m.(*expirable.Semaphore).ReleaseID(now, call.Permit.ID, call)
		}
	case request.OpSetPermits:
		return func(m machine.Machine, now machine.Instant) {
			m.(*expirable.Semaphore).Set(now, setModes[call.Permit.How], int(call.Permit.Count), call)
		}
	}
	return k.holding.Event(call, hold, owner)
}

func (k expirableKind) Send(command any, now machine.Instant) {
	c := command.(*expirable.Command)
	lend := func(call redisclient.Call) bool {
		return c.Kind != expirable.Renew && k.actor.Lend(c.Kind == expirable.Acquire, call)
	}
	k.Run(c, time.Now().Add(c.Deadline-now), lend, func(r expirable.Result) {
		k.actor.Replied(&Reply{To: k.actor, Seq: c.Seq, Other: permitsReply{r, c.Kind == expirable.Acquire && r.Served > 0}})
	})
}

// permitsReply is the Other of a Reply. took reports whether the command took permits.
type permitsReply struct {
	expirable.Result
	took bool
}

func (k expirableKind) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	m.(*expirable.Semaphore).Replied(now, r.Seq, r.Other.(permitsReply).Result)
}

func (k expirableKind) Inspect(deadline time.Time, done func(*messages.Status, *machine.Answer)) {
	k.ExpirableSemaphore.Inspect(deadline, toStatus(done))
}

// Retires removes the record of the last command at the end of the System, as that of a semaphore does. The next actor
// of a name has the same record, and does not know what its predecessors have sent.
func (k expirableKind) Retires(m machine.Machine, closing bool) {
	number, certain := m.(*expirable.Semaphore).Sent()
	switch {
	case !certain:
		k.system.keepPermitRecords()
	case closing && number != 0 && !k.system.keepsPermitRecords():
		k.DeleteRecord(number)
	}
}

func (k expirableKind) Cleanups(m machine.Machine) (all []Cleanup) {
	k.system.keepPermitRecords() // the actor does not await the commands under way
	commands, ttl := m.(*expirable.Semaphore).Cleanup(k.system.Now())
	for i := range commands {
		all = append(all, Cleanup{ttl, func(done func(certain bool)) { k.CleanUp(commands[i], ttl, done) }})
	}
	return all
}

func (k expirableKind) Late(r *Reply) (cleanUpAgain bool) { return r.Other.(permitsReply).took }
