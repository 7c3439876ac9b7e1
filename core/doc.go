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
// to release or to renew; a late acquire takes the key for nobody, and is found
// out at the next refusal, or expires.
//
// # Trust
//
// A lease is trusted until
//
//	when the command that set the TTL was sent + TTL − margin
//
// on the process's own monotonic clock, never counted from when the reply came. The
// margin (see Margin) allows for clocks that run at different speeds. Every event
// looks at the clock before anything else, so nothing is granted, and no hold is
// released as if it were good, after that instant.
//
// # Commands
//
// One command about the lease is under way at a time (Lock.main), beside it the
// watchdog's renewal, and beside both what is left to clean up of earlier terms.
// Scripts set what they are told instead of adding to it; a command without a reply
// is sent again until its outcome is known, or does not matter any more. Replies
// carry the number of their command; one that is not awaited is ignored.
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
package core
