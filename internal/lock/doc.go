// Package lock decides what a lock does next. A Lock is a plain value with methods: it has no Redis, no actors and no
// clock of its own. A lock actor of package actors turns messages, timers and replies into its events, and carries out
// the effects that come back.
//
// # Lease and hold
//
// The lease is the process's right to the key in Redis; a hold is one local holder's use of it. A thousand waiters in a
// process contend for one lease.
//
//	lease   free ─▶ contending ─▶ owned ─▶ releasing ─▶ free
//	                    ▲           │ lost: expired, gone, taken, forced
//	                    └───────────┘
//	hold    waiting ─▶ granted(count) ─▶ released
//	           └─▶ timed out, cancelled     └─▶ lost
//
// # Terms
//
// The field in the lock's hash is "<system uuid>:<term>". A term begins whenever the process starts to contend for the
// key, and ends with the release or loss. Its number is never used again, so a release or renewal that arrives in a
// later term does nothing. An unanswered acquire may take a free key; the next refusal reveals that, or the key
// expires.
//
// # Trust
//
// A lease is trusted until
//
//	when the command that set the TTL was sent + TTL − margin
//
// on the process's own clock; it does not matter when the reply came. That clock counts the time the machine sleeps, as
// the lease does. The margin (see machine.Margin) allows for clocks that run at different speeds. Every event first
// compares the clock with this end, so after the end no hold is granted, and no hold is released as if it were valid.
//
// # Commands
//
// At any time there is at most one command about the lease (work.main) and one renewal by the watchdog, besides
// cleanups of earlier terms, forced releases, and the command about a fair lock's waiters. Scripts set values instead
// of adding to them. An unanswered command is sent again until its outcome is known or no longer matters. A reply
// carries the number of its command; a reply that is not awaited is ignored. Only the replies to a renewal, an
// extension and a forced release may be awaited for less than CallTimeout. If Redis is far away, every shorter wait for
// another reply would end too early. A grant whose lease is over when the reply comes is refused, and the lease is
// released.
//
// A hold may get another lease (Extend), longer or shorter. The command for that is the main one, is not under way
// together with a renewal, and is sent once. If it may shorten the TTL, the trust is shortened before it is sent; it is
// lengthened only by the reply. While an unanswered command may still shorten a lease of some length
// (lease.unanswered), no lease of that length is trusted.
//
// Redis cannot delay a release by refusing another change. Re-entries and partial releases change the hold count one
// after another. While Redis refuses such a change, the release of the last hold ends the hold at once, and a partial
// release is answered after CallTimeout; the count in Redis follows later.
//
// Three things are cleaned up by releases of their term in the background, until one is confirmed or the TTL is
// certainly over: a release whose outcome is unknown when the lease ends, an acquire that may have been carried out
// although its waiter has left, and a lost hold whose key may still exist.
//
// # Waiting
//
// The first try is made at once. After a refusal the lock subscribes to its channel. It tries again when that is
// confirmed, when a message comes, when the other holder's TTL ends, and at the latest after Poll. A message on that
// channel is only a hint.
//
// # Wait queue
//
// The processes that wait for a lock have a wait queue in Redis, with one entry per process. An acquire that is refused
// adds the entry, and every later one confirms it. A process that releases the lock, or finds it free out of turn,
// transfers it: the script makes the first process of the wait queue the owner, under the term of its entry, and
// notifies it (Transferred). That process then has the lease without another command.
//
// A transfer is trusted like a lease, although another process has made it. So it names the command of this process
// that added or confirmed the entry. The transfer was made after that command was carried out, and the key lives for
// the TTL of a transfer from then on. The lease is trusted until
//
//	when that command was sent + TransferTTL − margin
//
// A later time would not be safe, since the message may arrive when the transfer has expired and another process has
// the lock. If the process does not remember the command, or that time is over, the next try finds the lock held by its
// own term, and gets a lease that can be trusted.
//
// Processes may differ in their configuration, so the entry says how long a transfer to it lasts. An entry that is not
// confirmed for that long is skipped (EntryTimeout). A transfer to a term that is over is released when its message
// arrives.
//
// # Order
//
// The order decides which waiter of this process is next. There are two: the queue of this process with a hand-off
// limit (localOrder), and one queue of all processes in Redis (redisOrder), which a fair lock has. Commands list the
// waiters only for redisOrder.
//
// # Hand-off limit
//
// While waiters queue in localOrder, the lease passes from one to the next in memory. At the hand-off limit, a yield
// asks Redis whether others wait. If so, it transfers the lock to the first process of the wait queue and adds an entry
// for this one at the end. Otherwise it renews the lease.
//
// Foreign clients, such as Redisson's, do not use the wait queue. When they wait as well, a yield leaves the lock to
// them now and then: it frees the lock, and for a moment no process of the wait queue may take it. Since some of them
// wait without subscribing, this also happens now and then when none is seen.
//
// # Linger
//
// With Config.Linger, the lease may linger after the end of its last hold, for a limited time since it was taken. It
// then passes to the next request as in a local hand-off. Another process that finds the lock held asks for it, by a
// message that names the term; see linger.go.
//
// # Sharing
//
// A lease is exclusive or shared. Readers of one process share one lease: the first takes it, others join it in memory,
// each with its own hold, and the last one releases it. Redis sees them as one reader; their re-entries are added to
// its count. No reader joins past a writer that waits in the process's queue. At the hand-off limit of the readers,
// Redis is asked whether others wait. If so, the lease is sealed: it ends when its readers have left, and later readers
// wait for the next lease.
//
// The end of a reader's fixed lease is kept in memory, since others may keep the lease alive for longer. If the reader
// is alone, the lease in Redis ends with its fixed lease.
//
// # Tokens
//
// Fencing tokens are drawn in blocks: one for the holder, and one for each waiter behind it, but at least one and a
// half times as many as either of the last two turns needed. No other process can draw a token before the term ends, so
// local hand-offs get higher tokens than all earlier holds, and lower ones than all later holds.
//
// The lock remembers the highest token of each of its counters, and draws above it. If Redis has lost tokens, as in a
// failover, the draw first sets the counter to that number. The counter goes no further, however many processes do
// that, and however often. A transfer does not compare with that number, so a process that gets a lower token by a
// transfer draws again.
//
// # A queue in Redis
//
// For the order of arrival across all processes (redisOrder), every waiter has a term of its own from the start, and a
// queue entry under it. One command, SyncQueue, synchronises the queue in Redis with the queue of the process: it adds
// new entries, removes the entries of waiters that have left, confirms that the other waiters are alive, releases the
// hold that has ended, and takes the lock for the waiter that is next. SyncQueue is safe to send at any time and any
// number of times.
//
// Redis may carry out the commands of a process in another order than they were sent, and the order of the replies does
// not reveal it. So a command that lists the waiters behind a hold names that hold: after its release it adds no
// waiters, since they may have left. And if two commands that list different waiters were under way together, or one of
// them was not answered, the process lists its waiters once more.
//
// # Files
//
//	lock.go work.go              the state; the part that few locks need at a time
//	requests.go                  the requests
//	queries.go                   what the actor reads, and what it ends when it has failed for good
//	step.go                      what every event does; replies and timers
//	op.go                        the kinds of commands; sending one, and sending it again after a pause
//	acquire.go grant.go count.go renewal.go extend.go release.go keep.go
//	                             the commands: each with the handling of its reply
//	order.go local_order.go redis_order.go
//	                             which waiter is next, with the commands for that
//	yield.go deferral.go         the end of a turn, after which others get the lock
//	linger.go                    a lease that lingers without a hold
//	wait_queue.go                the wait queue of processes, and transfers
//	pending.go waiters.go        changes and requests that wait
//	lease.go end.go share.go token.go
//	                             trust, the end of holds and leases, readers, fencing tokens
//	effects.go hold.go           commands and effects, holds
package lock
