// Package expirable decides about the permits of an expirable semaphore in one process: which request gets a permit,
// how long the permit is trusted, when it is renewed, and when it is lost.
//
// Like a lock in package lock, a Semaphore is a value without I/O. Every event takes the time, and
// yields effects.
//
// # Commands
//
// Redis carries out a numbered command once, however often it is sent, but only as long as no later command of this
// process has come: see scripts/common/once.lua. So a Semaphore has one numbered command under way, and repeats it
// under its number until its outcome is known or does not matter. The kinds of commands take turns. A Release that
// Redis rejects is over, and its permits are left to expire; permits that an earlier try may have freed are given back
// again by later Releases. Renewals have no number: they set an expiry, and are sent alongside the other commands.
//
// # Waiting
//
// One acquire is for all waiting requests, in their order; Redis serves the first of them, as far as there are permits.
// The others wait for a message of the channel, for the next expiry, and for a time between half of Poll and Poll at
// the latest.
//
// A request may want several permits, all or none. They are one hold: what happens to one of them happens to all. While
// it is the first, those behind it wait, and Redis reserves the free permits for this process; see
// expirable_acquire.lua. When it has left without a grant, the process tries at once, if only to end the reservation,
// and again if that fails.
//
// # Trust
//
// A permit is trusted from when the first command was sent that may have set its expiry, for the
// lease minus the margin. The watchdog renews all permits without a fixed lease in one command, every
// Renewal. A reply that comes late counts from when its renewal was sent. A permit that is not renewed in
// time, or is gone from Redis, is lost, and its holder is notified.
//
// A permit may get another lease (Extend), by the command of a renewal. See extend.go for when that lease is trusted.
//
// # Hand-off
//
// A permit of the watchdog's passes in memory from its holder to the first waiter, with its id. At
// the hand-off limit one is released in Redis instead, and the process does not try for a moment, so
// that others get it. A permit whose id was shown is not handed off: a process that knows the id may release
// it, and would release the permit of another holder.
//
// # Time
//
// NextWake derives from the state, but for the ends of holds and of the requests about them: a process may have
// thousands, and every event asks twice what is next. To look at 10,000 holds each time would make an acquire with its
// release take half a millisecond instead of ten microseconds. So nextEnd remembers the first end. It may be too early,
// after a renewal or a release: the Tick then finds it anew.
//
// # Files
//
//	requests.go   the requests
//	ensure.go     the request that a permit is valid for some time
//	step.go       the other events, what every event does, and which command is next
//	op.go         the kinds of commands; sending one, and sending it again
//	acquire.go    getting permits from Redis
//	release.go    giving permits back, or handing them off
//	renewal.go    the watchdog
//	extend.go     other leases for single holds
//	set.go        the number of permits
//	waiters.go    the requests that wait
//	end.go        the ends of holds, and of the requests that are about them
//	semaphore.go  the state
//	queries.go    what an actor reads of it
//	effects.go    effects, commands and answers
package expirable
