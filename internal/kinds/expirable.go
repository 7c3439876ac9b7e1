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

// expirableAdapter is the Adapter of expirable semaphores.
type expirableAdapter struct {
	holding
	*backend.ExpirableSemaphore
	kinds *Kinds
	actor Actor
	// idPrefix is the beginning of the ids of the semaphore's permits.
	idPrefix [8]byte
}

func newExpirable(s *Kinds, name string, a Actor) Adapter {
	id, _ := uuid.Parse(s.ID)
	return expirableAdapter{
		ExpirableSemaphore: backend.NewExpirableSemaphore(s.Server, name, s.ID), kinds: s, actor: a, idPrefix: [8]byte(id[:8]),
	}
}

func (a expirableAdapter) Fresh() machine.Machine {
	s := expirable.New(a.kinds.Config)
	return &s
}

func (a expirableAdapter) Draft(of machine.Machine) machine.Machine {
	next := *of.(*expirable.Semaphore)
	return &next
}

func (a expirableAdapter) Acquire(m machine.Machine, now machine.Instant, req machine.Request) {
	call := req.Ref.(*request.Call)
	m.(*expirable.Semaphore).Acquire(now, expirable.Request{
		Request: req, Random: a.newPermitID(),
		Count: call.PermitsTogether(), Shown: call.ShowsPermit(), Total: call.TotalPermits(),
	})
}

// newPermitID makes an id that begins with the System (see keyspace.PermitSystemOf), so that a reader knows which
// process has the permit. The rest is random: 64 bits, which cannot be guessed.
func (a expirableAdapter) newPermitID() (id machine.PermitID) {
	n := copy(id[:], a.idPrefix[:])
	_, _ = rand.Read(id[n:]) // rand.Read never fails
	return id
}

var setModes = map[messages.SetPermitsHow]expirable.SetMode{
	messages.SetPermitsHow_SET_PERMITS_HOW_TRY:    expirable.SetIfUnset,
	messages.SetPermitsHow_SET_PERMITS_HOW_TOTAL:  expirable.SetTotal,
	messages.SetPermitsHow_SET_PERMITS_HOW_ADD:    expirable.SetAdd,
	messages.SetPermitsHow_SET_PERMITS_HOW_DELETE: expirable.Delete,
}

func (a expirableAdapter) Event(call *request.Call, hold uint64, owner machine.Owner) Event {
	switch call.Op {
	case request.OpReleaseID:
		return func(m machine.Machine, now machine.Instant) {
			m.(*expirable.Semaphore).ReleaseID(now, call.Permit.ID, call)
		}
	case request.OpSet:
		return func(m machine.Machine, now machine.Instant) {
			m.(*expirable.Semaphore).Set(now, setModes[call.Permit.How], int(call.Permit.Count), call)
		}
	}
	return a.holding.Event(call, hold, owner)
}

func (a expirableAdapter) Send(command any, now machine.Instant) {
	c := command.(*expirable.Command)
	lend := func(call redisclient.Call) bool {
		return c.Kind != expirable.Renew && a.actor.Lend(c.Kind == expirable.Acquire, call)
	}
	a.Run(c, time.Now().Add(c.Deadline-now), lend, func(r expirable.Result) {
		a.actor.Replied(&Reply{To: a.actor, Seq: c.Seq, Other: permitsReply{r, c.Kind == expirable.Acquire && r.Served > 0}})
	})
}

// permitsReply is the Other of a Reply. took reports whether the command took permits.
type permitsReply struct {
	expirable.Result
	took bool
}

func (a expirableAdapter) Apply(m machine.Machine, now machine.Instant, r *Reply) {
	m.(*expirable.Semaphore).Replied(now, r.Seq, r.Other.(permitsReply).Result)
}

func (a expirableAdapter) Inspect(deadline time.Time, done func(*messages.Status, *machine.Answer)) {
	a.ExpirableSemaphore.Inspect(deadline, toStatus(done))
}

// Retires removes the record of the last command at the end of the System, as semaphoreAdapter.Retires does. The next
// actor of a name has the same record, and does not know which commands its predecessors have sent.
func (a expirableAdapter) Retires(m machine.Machine, closing bool) {
	number, certain := m.(*expirable.Semaphore).Sent()
	switch {
	case !certain:
		a.kinds.keepPermitRecords()
	case closing && number != 0 && !a.kinds.keepsPermitRecords():
		a.DeleteRecord(number)
	}
}

func (a expirableAdapter) Cleanups(m machine.Machine) (all []Cleanup) {
	a.kinds.keepPermitRecords() // the actor does not await the commands under way
	commands, ttl := m.(*expirable.Semaphore).Cleanup(a.kinds.Now())
	for i := range commands {
		all = append(all, Cleanup{ttl, func(done func(certain bool)) { a.CleanUp(commands[i], ttl, done) }})
	}
	return all
}

func (a expirableAdapter) Late(r *Reply) (cleanUpAgain bool) { return r.Other.(permitsReply).took }
