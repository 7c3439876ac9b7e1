package core

import "time"

// Instant is a point in time, counted from when the system started, on a clock that never
// goes backwards and goes on while the machine sleeps.
type Instant = time.Duration

// EffectKind says what an Effect asks for.
type EffectKind uint8

const (
	// Send runs Command in Redis; the outcome comes back through Replied.
	Send EffectKind = iota + 1
	// Reply delivers Answer to whoever made the request Ref.
	Reply
	// TellLost tells the holder Ref that its hold is over, with Answer's Reason and Detail.
	TellLost
	// TellAtRisk warns the holder Ref that the lease ends at Answer.Until unless a renewal succeeds.
	TellAtRisk
	// Over says that the hold of Ref has ended, in whichever way: nothing more will be told to it.
	Over
	// Subscribe asks for the messages of the lock's channel, or of the channel that
	// Term's entry in Redis's queue has; Subscribed confirms.
	Subscribe
	// Unsubscribe ends that.
	Unsubscribe
	// LeaveBehind says that a release has failed for good, so that a key of ours may be in
	// Redis until Answer.Until.
	LeaveBehind
)

// Effect is something that the shell must do for the lock. Effects are part of the
// lock's state until they are taken, so that a crash of the shell loses none.
type Effect struct {
	Kind    EffectKind
	Ref     any
	Answer  Answer
	Command Command
	Term    uint64
}

// CommandKind names the script of a Command.
type CommandKind uint8

// The scripts, as in package scripts.
const (
	Acquire CommandKind = iota + 1
	Release
	Renew
	Yield
	ForceRelease
	// Look asks whether others wait.
	Look
	// Enrol lists who waits in Redis's queue, and takes the lock if one of them is next.
	Enrol
)

// Command is one script to run on the lock's key.
type Command struct {
	Kind CommandKind
	Seq  uint64
	// Term is the number in the owner field; with Enrol, which term to release on the
	// way, 0 for none.
	Term uint64
	// Count and Shared are the hold counts to set; 0 of both with Release frees the lock.
	Count  int
	Shared int
	Mode   Mode
	Lease  time.Duration
	// Announce says for Acquire that a writer will wait, so that readers elsewhere do
	// not join past it.
	Announce bool
	// Tokens is how many fencing tokens to draw.
	Tokens int64
	// Entries are the waiters, in their order; Take lets Enrol take the lock. Others of
	// ours up to the term Top leave Redis's queue.
	Entries []Entry
	Take    bool
	Top     uint64
	// Subscribed says for Yield and Look that one of the channel's subscribers is this system.
	Subscribed bool
	// Open makes Yield release the lock even if nobody is seen to wait.
	Open bool
	// Hurry keeps a Renew from waiting for company.
	Hurry    bool
	Deadline Instant
	// MaxTTL is for how long from now a key of this term may be in Redis, whatever arrives
	// late: it bounds what is tried, outside the core, to release it. No script is told. It
	// is no Instant, since the systems of a RedLock have a clock each.
	MaxTTL time.Duration
}

// Outcome is what became of a Command.
type Outcome uint8

const (
	// Done: the script did what it was asked. For Yield: it released the lock.
	Done Outcome = iota + 1
	// Kept: Yield found nobody waiting and refreshed the lease.
	Kept
	// Refused: somebody else holds the lock.
	Refused
	// Absent: the owner does not hold the lock (any more).
	Absent
	// Failed: Redis refused, or did not answer.
	Failed
)

// Result is the outcome of a Command with what came along.
type Result struct {
	Outcome Outcome
	// TTL is what Refused found left of the other's lease; negative: no end.
	TTL time.Duration
	// Holder is the field that Refused found; OwnTerm its number if it is this
	// system's own, else 0.
	// With Enrol, Done says that OwnTerm has taken the lock.
	Holder  string
	OwnTerm uint64
	// Freed says for Enrol that its Term held the lock, and has released it.
	Freed bool
	// Tokens are the highest of those drawn, of each counter.
	Tokens []int64
	// Taken says for Absent that the key is somebody else's now, instead of gone.
	Taken bool
	// Others is how many others Yield or Look saw waiting.
	Others int
	// WasHeld is the answer to ForceRelease.
	WasHeld bool
	// Err says why it Failed: for now (Transient) or for good, and whether the
	// script may have run all the same (Unsure).
	Err       error
	Transient bool
	Unsure    bool
}

// AnswerKind says how a request ended.
type AnswerKind uint8

const (
	// Granted: HoldID has the lock, Count times, until Until (or longer, if renewed).
	Granted AnswerKind = iota + 1
	// NotGranted: no lock, because of Reason.
	NotGranted
	// Freed: the release is confirmed or handed on; Count says how often it is still held.
	Freed
	// NotFreed: the release failed, because of Reason.
	NotFreed
	// Withdrawn: Count waiting requests were cancelled.
	Withdrawn
	// Forced: the lock was freed; Count is 1 if it was held.
	Forced
	// Ensured: the lease is good until Until.
	Ensured
	// NotDone: a Force or an Ensure failed, because of Reason.
	NotDone
)

// Answer is the end of a request. Every request gets exactly one.
type Answer struct {
	Kind   AnswerKind
	HoldID uint64
	Count  int
	// Until is how long the lease is good for; Bound is an earlier end of the hold that
	// no renewal moves, 0 if there is none.
	Until Instant
	Bound Instant
	// Root is the Ref of the hold's first request.
	Root   any
	Tokens []int64
	// HandedOn says that the lock was passed on inside this process.
	HandedOn bool
	Reason   Reason
	// TTL is what was left of the other holder's lease when last seen; negative if not known.
	TTL    time.Duration
	Detail string
}

// Reason says why something was refused or lost. The numbers are those of the
// Reason enumeration in package messages.
type Reason uint8

// See messages/lockkeeper.proto for what each means.
const (
	Invalid Reason = iota + 1
	Held
	TimedOut
	CancelledByRequest
	QueueFull
	Closed
	Unavailable
	Rejected
	Crashed
	NotHeld
	Lost
	Expired
	Gone
	Taken
	ByForce
	MaxHold
	Reentry
)
