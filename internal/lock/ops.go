package lock

import "time"

// opKind says what an op is for.
type opKind uint8

const (
	opNone opKind = iota
	// opAcquire contends for a new term.
	opAcquire
	// opGrant sets count and lease for the next local waiter, before it is granted.
	opGrant
	// opCount sets the hold count: a re-entry or a partial release.
	opCount
	// opYield ends a turn at the hand-off limit.
	opYield
	// opRelease frees the lock.
	opRelease
	// opKeep leaves the key to expire after the minimum time of a hold that has ended.
	opKeep
	// opRenew renews the lease.
	opRenew
	// opExtend gives the lease another length, and makes it a fixed one or one of the watchdog.
	opExtend
	// opForce frees the lock of the named owners, which may be foreign clients.
	opForce
	// opCountWaiters asks whether others wait.
	opCountWaiters
	// opSyncQueue brings the queue in Redis up to date.
	opSyncQueue
)

// operation is what the kinds of ops differ in. Each kind has a file with these functions.
type operation struct {
	// command fills in the Command.
	command func(*Lock, *op, *Command)
	// replied handles the reply to an op that is main; nil for those that never are.
	replied func(*Lock, op, Result)
	// timeout returns how long the reply is awaited; nil for CallTimeout.
	timeout func(*Lock, *op) time.Duration
}

// ops has the operation of each kind.
var ops [opSyncQueue + 1]operation

// The functions in ops read it when they send another command, so it cannot be initialized where it is declared.
func init() {
	ops = [...]operation{
		opAcquire:      {command: (*Lock).acquireCommand, replied: (*Lock).acquireReplied},
		opGrant:        {command: (*Lock).acquireCommand, replied: (*Lock).grantReplied},
		opCount:        {command: (*Lock).countCommand, replied: (*Lock).countReplied},
		opYield:        {command: (*Lock).yieldCommand, replied: (*Lock).yieldReplied},
		opRelease:      {command: (*Lock).releaseCommand, replied: (*Lock).releaseReplied},
		opKeep:         {command: (*Lock).keepCommand, replied: (*Lock).releaseReplied},
		opRenew:        {command: (*Lock).renewCommand, timeout: (*Lock).renewTimeout},
		opExtend:       {command: (*Lock).extendCommand, replied: (*Lock).extendReplied, timeout: (*Lock).extendTimeout},
		opForce:        {command: (*Lock).forceCommand, timeout: (*Lock).forceTimeout},
		opCountWaiters: {command: (*Lock).countWaitersCommand, replied: (*Lock).countWaitersReplied},
		opSyncQueue:    {command: (*Lock).syncCommand},
	}
}
