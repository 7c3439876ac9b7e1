package actors

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/leased"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Permit is what a Call says of a permit: KIND_PERMITS needs one for OpAcquire.
type Permit struct {
	// ID is the permit's in Redis; the grant brings it. It is an argument of OpReleaseID.
	ID leased.ID
	// Until is the end of the permit's validity, which is kept up to date while it is held.
	Until atomic.Int64
	// Shown says that its id was shown, so that the permit is not handed off in this process.
	Shown atomic.Bool
	// How and Count are arguments of OpSetPermits.
	How   leased.How
	Count int64
}

// newPermitID makes an id that begins with the System (see redisio.PermitSystemOf), so that whoever looks
// knows which process has the permit. The rest is random: 64 bits, which nobody guesses.
func (p *permits) newPermitID() (id leased.ID) {
	n := copy(id[:], p.system[:])
	_, _ = rand.Read(id[n:]) // it never fails
	return id
}

// ParsePermitID reads the id of a permit.
func ParsePermitID(text string) (id leased.ID, err error) {
	if n, bad := hex.Decode(id[:], []byte(text)[:min(len(text), 2*len(id))]); bad != nil || n != len(id) || len(text) != 2*n {
		return id, errors.New("the id of a permit has 32 hexadecimal digits")
	}
	return id, nil
}

// MaxPermits is how many permits there may be of a name; Redisson counts no further.
const MaxPermits = 1<<31 - 1

// CheckPermits returns an error if the number of permits cannot be set so.
func CheckPermits(how leased.How, n int64) error {
	least := int64(0)
	if how == leased.Add {
		least = -MaxPermits
	}
	if n < least || n > MaxPermits {
		return fmt.Errorf("the number of permits is %d, and must be between %d and %d", n, least, MaxPermits)
	}
	return nil
}

// checkPermits returns an error for a message that is not for a lock of that kind, or not valid.
func checkPermits(m any, kind messages.Kind) error {
	ofPermits, isForLocks, err := false, false, error(nil)
	switch m := m.(type) {
	case *messages.ForceRelease:
		isForLocks = true
	case *messages.ReleaseByID:
		ofPermits = true
		_, err = ParsePermitID(m.PermitId)
	case *messages.SetTotal:
		ofPermits = true
		if how, known := hows[m.How]; known {
			err = CheckPermits(how, m.Permits)
		} else {
			err = fmt.Errorf("the way %d to set permits is unknown; known are %s", m.How, listed(messages.PermitsHow_name))
		}
	}
	switch isPermits := kind == messages.Kind_KIND_PERMITS; {
	case ofPermits && !isPermits:
		return fmt.Errorf("the request is for %v only, and not for %v", messages.Kind_KIND_PERMITS, kind)
	case isForLocks && isPermits:
		return fmt.Errorf("the request is not for %v: release a permit by its id", messages.Kind_KIND_PERMITS)
	}
	return err
}

var hows = map[messages.PermitsHow]leased.How{
	messages.PermitsHow_PERMITS_HOW_TRY: leased.Try, messages.PermitsHow_PERMITS_HOW_TOTAL: leased.Total, messages.PermitsHow_PERMITS_HOW_ADD: leased.Add,
}

func (call *Call) shows() bool { return call.Permit != nil && call.Permit.Shown.Load() }

func (call *Call) permitted(id leased.ID, until lock.Instant) {
	call.Permit.ID = id
	call.Permit.Until.Store(int64(until))
}

func (l *messageRequest) shows() bool { return l.showsPermit }

func (l *messageRequest) permitted(id leased.ID, _ lock.Instant) { l.permit = id }

// releaseID handles the release of a permit by its id, and setPermits the setting of their number.
func (s *lockState) releaseID(source any, id leased.ID, by replier) {
	s.handle(source, func(l decider, now lock.Instant) { l.(*permits).ReleaseID(now, id, by) })
}

func (s *lockState) setPermits(source any, how leased.How, n int64, by replier) {
	s.handle(source, func(l decider, now lock.Instant) { l.(*permits).Set(now, how, int(n), by) })
}

// permitsMessage handles the messages that are for permits only.
func (s *lockState) permitsMessage(m any, sender *actor.PID) {
	switch m := m.(type) {
	case *messages.ReleaseByID:
		id, _ := ParsePermitID(m.PermitId) // it was checked
		s.releaseID(m, id, &messageRequest{op: OpReleaseID, lock: m.Lock, replyTo: sender})
	case *messages.SetTotal:
		s.setPermits(m, hows[m.How], m.Permits, &messageRequest{op: OpSetPermits, lock: m.Lock, replyTo: sender})
	}
}

// sendPermits has a command of the permits run in Redis; the reply comes back as a message.
func (s *lockState) sendPermits(c *leased.Command) {
	kind := lock.Release
	if c.Kind == leased.Acquire {
		kind = lock.Acquire
	}
	lend := func(call redisio.Call) bool { return c.Kind != leased.Renew && s.Lend(kind, call) }
	s.permits.Run(c, time.Now().Add(c.Deadline-s.now), lend, func(r leased.Result) {
		reply := backend.Reply{}
		if c.Kind == leased.Acquire && r.Served > 0 {
			reply.Outcome = lock.Done // something was taken
		}
		s.post(&replied{state: s, seq: c.Seq, result: reply.Result, permits: &r})
	})
}

// permitsReplied handles the reply.
func (s *lockState) permitsReplied(m *replied) {
	s.handle(m, func(l decider, now lock.Instant) { l.(*permits).Replied(now, m.seq, *m.permits) })
}

// cleanUpPermits is cleanUp for permits.
func (s *lockState) cleanUpPermits() {
	for i := range s.leaving.permits {
		s.permits.CleanUp(s.leaving.permits[i], s.leaving.ttl, func(certain bool) {
			if !certain {
				s.rt.server.LeaveToExpire(s.rt.Now() + s.leaving.ttl)
			}
			s.rt.deliver(s.pid, &cleanedUp{})
		})
	}
}
