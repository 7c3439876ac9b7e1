// Package core decides what a lock does next. It is a plain value with methods:
// no Redis, no actors, no clock of its own. Package actors turns messages, timers
// and replies into its events, and carries out the effects that come back.
//
// # Lease and hold
//
// The lease is the process's right to the key in Redis; a hold is one local
// holder's turn on it. A thousand waiters in a process contend for one lease.
//
//	lease   free ─▶ contending ─▶ owned ─▶ releasing ─▶ free
//	                    ▲           │ lost: expired, gone, taken, forced
//	                    └───────────┘
//	hold    waiting ─▶ granted(count) ─▶ released
//	           └─▶ timed out, cancelled     └─▶ lost
//
// # Terms
//
// The field in the lock's hash is "<system uuid>:<term>". A term begins with every
// new contention for the key and ends with its release or loss, and its number is
// never used again. So a command that arrives late, in a later term, finds nothing
// to release or to renew; a late acquire takes a key that nobody holds, and is found
// out at the next refusal, or expires.
//
// # Trust
//
// A lease is trusted until
//
//	when the command that set the TTL was sent + TTL − margin
//
// on the process's own clock, never counted from when the reply came. That clock goes on
// while the machine sleeps, as the lease does. The margin (see Margin) allows for clocks
// that run at different speeds. Every event looks at the clock before anything else, so
// nothing is granted, and no hold is released as if it were good, after that instant.
//
// # Commands
//
// One command about the lease is under way at a time (Lock.main), beside it the
// watchdog's renewal, and beside both what is left to clean up of earlier terms.
// Scripts set what they are told instead of adding to it; a command without a reply
// is sent again until its outcome is known, or does not matter any more. Replies
// carry the number of their command; one that is not awaited is ignored.
//
// Nothing that Redis refuses holds up what frees. Re-entries and partial releases change the
// count one after another; while one of them is refused, a hold that is given back
// altogether ends at once, and a partial release is answered after the time of a call. The
// count in Redis then follows.
//
// A release whose outcome stays unknown until the lease has run out, an acquire that
// may have been carried out though nobody wants it any more, a hold that was lost
// while its key may still be there: each is followed by releases of that term in the
// background, until one is confirmed or the TTL is certainly over.
//
// # Waiting
//
// The first try is made at once. Refused, the lock subscribes to its channel, and
// tries again when that is confirmed, when a message comes, when the other's TTL
// runs out, and in any case after the poll bound. A message is a hint and no more.
//
// # Tenure
//
// While waiters queue, the lease passes from one to the next in memory. When the
// tenure is over, one script asks whether others are subscribed: if so it releases
// the lock and the process stands back until each of them has had a turn, or the
// time for that is over; if not the next tenure begins. Since some wait without
// subscribing, the lock is now and then released all the same.
//
// # Sharing
//
// A lease is exclusive or shared. Readers of one process share one lease: the first
// takes it, others join it in memory, each with a hold that ends by itself, and the
// last to leave gives it back. Redis knows them as one reader; their re-entries count
// on top. Nobody joins past a writer who waits in the process's queue. When the tenure
// of the readers is over, Redis is asked whether others wait; if so the lease is closed:
// it ends when its readers have left, and who comes later waits for the next.
//
// A reader with a fixed lease is held to it in memory as long as others keep the
// lease alive; alone, the lease in Redis is its own, and is not kept beyond its end.
//
// # Tokens
//
// Fencing tokens are drawn in blocks: one for the holder, and one for each of those
// who wait behind it. Nobody else can draw a token before the term is over, so what is
// handed on in memory has higher tokens than all before, and lower ones than all after.
//
// # A queue in Redis
//
// Where the order of arrival counts over all processes, every waiter has a term of its
// own from the start, and stands in Redis's queue with it. One script brings that queue
// in line with ours: it enters those who are new, takes out those who have left, says
// that the others live, gives back the hold that has ended, and takes the lock for the
// waiter whose turn it is. It may be sent at any time and any number of times.
package core
