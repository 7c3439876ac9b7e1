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
	// Random makes the ids of the permits unique that are taken from Redis for the request.
	Random machine.PermitID
	// Count is the number of permits that the request wants, all or none; from 1 to machine.MaxTogether.
	Count int
	// Shown says that others get to know the ids, so the permits are not handed off.
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
	// seq numbers what is sent, so that a reply finds its command.
	seq uint64
	// number is the number of the last command that Redis carries out once.
	number uint64
	// mayArrive says that a numbered command, or a copy of it, may still arrive.
	mayArrive bool

	queue requestqueue.Queue[*Request]
	// reserved is the first request of the queue at the last Acquire, if it wants several permits: Redis may reserve
	// free permits for it. 0 if there is none.
	reserved uint64
	// reservedUntil is the time until which Redis reserves them unless it is asked again.
	reservedUntil Instant
	holds         []*hold
	// nextEnd is not later than the first end of a hold, or of the time for an extension, a return or a set; 0 if there
	// is none. See doc.go.
	nextEnd machine.Earliest

	// main is the numbered command under way.
	main op
	// after is the kind of the last numbered command.
	after CommandKind
	// renewal is the command of the watchdog, which may be under way alongside main.
	renewal op
	// earlier are the tries of renewal before the last whose replies may still arrive.
	earlier []op
	// extensions are other leases for single holds, which wait or are under way.
	extensions []*extension
	// looked is the number of the first extensions that were sent, or cannot be sent before a reply comes.
	looked int
	// pendingReturns are the permits to give back.
	pendingReturns []permitReturn
	// returnAt is the time from which they are given back.
	returnAt Instant
	// sets are the requests to set the number of permits.
	sets []set

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
	// lost are the holds that were lost last. They explain the loss to a late Release.
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
	// shown says that others know the ids of its permits.
	shown bool
	// fixed says that the lease is not renewed.
	fixed bool
	// sentAt is the time of the last command that has set the expiry.
	sentAt Instant
	// until is the end of the trust in the permits.
	until Instant
	// maxEnd is the end of its max hold; 0 for none.
	maxEnd Instant
	// leaseEnd is the end of a fixed lease which the watchdog renews; 0 for none.
	leaseEnd Instant
	// unwatched says that no death of an owner ends the hold.
	unwatched bool
	// unanswered is the shortest lease that an unanswered command may still set.
	unanswered machine.Unanswered
	// longest is the latest expiry that a command may have set.
	longest Instant
	// restored says that a Restore may take the permits again after Redis has lost them.
	restored bool
}

// end returns the time until which the permits are trusted if they are not renewed.
func (h *hold) end() Instant {
	end := h.until
	for _, bound := range [...]Instant{h.maxEnd, h.leaseEnd} {
		if bound != 0 {
			end = min(end, bound)
		}
	}
	return end
}

// takenUntil returns the latest time at which the permits are free again.
func (h *hold) takenUntil() Instant { return max(h.until, h.longest) }

// permitReturn has the permits of a hold that are to be given back in Redis.
type permitReturn struct {
	permits machine.Permits
	// ref is the request that awaits the release; nil if there is none.
	ref any
	// answerBy is the time by which that request is answered.
	answerBy Instant
	// unknown says that the permit is not known to be one of this process.
	unknown bool
	// yields says that the permits are given back although a request waits here.
	yields bool
	// until is the time at which the permits have expired, or from which tries have no use.
	until Instant
	// rejections counts the rejections since a try that may have freed the permits.
	rejections int
}

// extension is a request for another lease of a hold.
type extension struct {
	hold uint64
	// lease is the length of the lease; 0 for the lease of the watchdog.
	lease time.Duration
	ref   any
	// by is the time until which the request waits, or its reply is awaited.
	by     Instant
	seq    uint64
	sentAt Instant
	// sets is the lease that its command sets; 0 before it is sent.
	sets time.Duration
	// fixed says that the watchdog does not renew that lease.
	fixed bool
	// ensures is the time until which an Ensure needs the permit; 0 for an Extend.
	ensures Instant
}

// set is a request to set the number of permits.
type set struct {
	mode  SetMode
	count int
	ref   any
	// until is the time by which the request is answered.
	until Instant
}

// waiting is what is known while a request waits.
type waiting struct {
	machine.Contest // its LastErr is beingSet while the process waits for that
	// defers says that no message brings the next try forward.
	defers bool
	// lastReason is the reason of a refusal with LastErr.
	lastReason machine.Reason
	// unset is the id of the last request that waited when an Acquire was sent that found no number of permits.
	unset uint64
}

// holdByID returns the hold with that id; nil if there is none.
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
	s.nextEnd.Add(by.end())
}

// extends reports whether an extension of a hold is under way.
func (s *Semaphore) extends(h *hold) bool {
	return slices.ContainsFunc(s.extensions, func(e *extension) bool { return e.hold == h.id && e.sets != 0 })
}

// releasing returns how many of the first of pendingReturns are under way.
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

// lease returns the lease that a request gets.
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
