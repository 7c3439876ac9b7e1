package machine

// EffectKind is what an Effect asks for.
type EffectKind uint8

const (
	// Send runs the command Ref in Redis; Replied delivers the outcome.
	Send EffectKind = iota + 1
	// Reply delivers Answer to the request Ref.
	Reply
	// NotifyLost notifies the holder Ref that its hold is lost, with Answer's Reason and Detail.
	NotifyLost
	// NotifyAtRisk warns the holder Ref that the lease ends at Answer.Until unless a renewal succeeds.
	NotifyAtRisk
	// HoldEnded reports that the hold of Ref has ended, for any reason. No notification follows.
	HoldEnded
	// Subscribe asks for the messages of the lock's channel, or of the channel of Term's queue
	// entry; Subscribed confirms it.
	Subscribe
	// Unsubscribe ends a subscription.
	Unsubscribe
	// LeaveToExpire reports that a release has failed for good: a key may stay in Redis until Answer.Until.
	LeaveToExpire
	// Renewed says that the hold of Ref, a permit of an expirable semaphore, is good until Answer.Until now.
	Renewed
	// Bounded says that the hold of Ref has another end: Answer.Bound is the end of its own fixed lease or max hold, 0
	// for none. It is 0 for permits: a Renewed before it has their end.
	Bounded
	// Forgotten says that permits of a semaphore may stay taken though no process has them, or that a latch may not be
	// counted down; Answer.Detail says why.
	Forgotten
	// ReturnRejected reports that Redis rejects returned permits, or a count-down, that no request awaits. The machine
	// tries again; Answer.Detail has the error.
	ReturnRejected
)

// Effect is an action that the lock actor carries out for its machine.
type Effect struct {
	Kind   EffectKind
	Ref    any
	Answer Answer
	// Term is the term of the channel, or of the lease that is lost or at risk.
	Term uint64
}
