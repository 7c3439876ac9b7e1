package expirable

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/requestqueue"
)

// Instant is a point in time on the system's clock.
type Instant = machine.Instant

// Request is a request for permits, and the hold once it is granted. Owner, Lease, MaxHold, Try,
// Deadline and Ref of machine.Request have the same meaning here.
type Request struct {
	machine.Request
	// Random makes the ids unique of the permits that are taken from Redis for the request.
	Random machine.PermitID
	// Count is the number of permits that it wants, all or none; from 1 to machine.MaxTogether.
	Count int
	// Shown: others get to know the ids, so the permits are not handed off.
	Shown bool
	// Total is the number of all permits, which is set if there is none; 0 if the request does not say.
	Total int
}

// reserves reports whether Redis reserves free permits for the request while it is the first and waits.
func (r *Request) reserves() bool { return r.Count > 1 && !r.Try }

// Semaphore is the state of the permits of one name in one process, with its decisions.
//
// It is a value, and crashes of its actor leave it whole: data behind its pointers and slices is
// never changed, only replaced or appended to.
type Semaphore struct {
	cfg     *machine.Config
	now     Instant
	closing bool
	// seq numbers what is sent, so that a reply finds its command; number is that of the last
	// command that Redis carries out once.
	seq, number uint64
	// mayArrive: a numbered command, or a copy of it, may still arrive.
	mayArrive bool

	queue requestqueue.Queue[*Request]
	// reserved is the first of the queue at the last Acquire if it wants several permits: Redis may reserve those that are free
	// for it, until reservedUntil unless it asks again. 0 if there is none.
	reserved      uint64
	reservedUntil Instant
	holds         []*hold
	// nextEnd is not later than the first end of a hold; 0 if there is none. See doc.go.
	nextEnd Instant
	// main is the numbered command under way, and renewal the watchdog's beside it. earlier are tries of renewal before the last
	// whose replies may still arrive. extensions are other leases for single permits, which wait or are under way.
	main, renewal op
	// after is the kind of the last numbered command.
	after      CommandKind
	earlier    []op
	extensions []*extension
	// back are the permits to give back, from backAt on, and sets the requests to set the number of permits.
	back   []giveBack
	backAt Instant
	sets   []set

	// renewAt is the time at which the watchdog renews; 0 if it has nothing to renew.
	renewAt Instant
	// atRisk says that the last renewal has failed, and that the holders were warned.
	atRisk machine.AtRisk
	// riskErr is the error of the renewals that have failed since the last one that succeeded.
	riskErr string
	// turn is the time in which permits are handed off in memory.
	turn machine.Turn
	wait waiting
	sub  machine.Subscription
	// lost are the holds that were lost last, to explain it to a late Release.
	lost machine.Losses

	effects machine.Effects
}

// New returns a Semaphore of which no permit is held.
func New(cfg *machine.Config) Semaphore { return Semaphore{cfg: cfg} }

// hold is what one request has got: a permit, or several, of which all are held or none.
type hold struct {
	id      uint64
	permits machine.Permits
	owner   machine.Owner
	ref     any
	shown   bool
	// fixed: the lease is not renewed. sentAt is the time of the last command that has set the expiry, and until the end
	// of the trust in the permit.
	fixed  bool
	sentAt Instant
	until  Instant
	// ends is the end of its max hold, and leaseEnd that of a fixed lease which the watchdog renews; 0 if it has none.
	ends, leaseEnd Instant
	// unwatched: no death of an owner ends it.
	unwatched bool
	// unanswered is of commands about the permits, and longest the latest expiry that a command may have set. restored: a
	// Restore may take them again after Redis has lost them.
	unanswered machine.Unanswered
	longest    Instant
	restored   bool
}

// end returns the time until which the permit is trusted if it is not renewed.
func (h *hold) end() Instant {
	end := h.until
	for _, bound := range [...]Instant{h.ends, h.leaseEnd} {
		if bound != 0 {
			end = min(end, bound)
		}
	}
	return end
}

// takenUntil returns the latest time at which the permit is free again.
func (h *hold) takenUntil() Instant { return max(h.until, h.longest) }

// giveBack are the permits of a hold that are to be given back in Redis.
type giveBack struct {
	permits machine.Permits
	// ref is the request that awaits the release until answerBy; nil if there is none.
	ref      any
	answerBy Instant
	// unknown: it is not known to be a permit of this process.
	unknown bool
	// yields: it is given back although a request waits here.
	yields bool
	// until is the time at which it has expired, or from which tries have no use.
	until Instant
	// rejections counts the rejections since a try that may have freed the permit.
	rejections int
}

// extension is a request for another lease of a hold: lease is its length, 0 for the watchdog. It waits, or is sent,
// until by. sets is the lease that its command sets, 0 before it is sent, and fixed says that it is not renewed.
type extension struct {
	hold   uint64
	lease  time.Duration
	ref    any
	by     Instant
	seq    uint64
	sentAt Instant
	sets   time.Duration
	fixed  bool
	// ensures is the time until which an Ensure needs the permit; 0 for an Extend.
	ensures Instant
}

// set is a request to set the number of permits. It is answered by until.
type set struct {
	mode  SetMode
	count int
	ref   any
	until Instant
}

// waiting is what is known while a request waits.
type waiting struct {
	// nextAt is the time of the next try if no message comes before. refused: there were not enough
	// permits. refusalIsStale: a message came while an acquire was under way.
	nextAt         Instant
	refused        bool
	refusalIsStale bool
	// defers: no message brings the next try forward.
	defers bool
	tries  int
	// lastErr is the error of the last try, or what it waits for; "" if too few permits are free. lastReason is the reason.
	lastErr    string
	lastReason machine.Reason
	// unset is the id of the last request that waited when an Acquire was sent that found no number of permits.
	unset uint64
}

func (s *Semaphore) holdByID(id uint64) *hold {
	if i := slices.IndexFunc(s.holds, func(h *hold) bool { return h.id == id }); i >= 0 {
		return s.holds[i]
	}
	return nil
}

// replace replaces a hold by another state of it.
func (s *Semaphore) replace(h, by *hold) {
	s.holds = slices.Clone(s.holds)
	s.holds[slices.Index(s.holds, h)] = by
	s.noteEnd(by)
}

// extends reports whether an extension of a hold is under way.
func (s *Semaphore) extends(h *hold) bool {
	return slices.ContainsFunc(s.extensions, func(e *extension) bool { return e.hold == h.id && e.sets != 0 })
}

// releasing returns how many of the first of back are under way.
func (s *Semaphore) releasing() int {
	if s.main.kind == Release {
		return s.main.count
	}
	return 0
}

// setting returns how many of the first of sets are under way.
func (s *Semaphore) setting() int {
	if s.main.kind == Set {
		return 1
	}
	return 0
}

func (s *Semaphore) lease(req *Request) time.Duration {
	if req.Lease > 0 {
		return req.Lease
	}
	return s.cfg.Watchdog
}

// without returns a list without one of its elements.
func without[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i == 0 {
		return list[1:]
	} else if i > 0 {
		return slices.Concat(list[:i], list[i+1:])
	}
	return list
}

// trust returns the time until which a lease can be trusted if a command sent at sentAt sets it.
func trust(sentAt Instant, lease time.Duration) Instant {
	return sentAt + lease - machine.Margin(lease)
}
