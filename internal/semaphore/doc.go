// Package semaphore decides which request gets the permits of a semaphore next, and when the requests that wait for a
// latch go on. A Pool is a plain value with methods, like a Lock of package lock: it has no Redis, no actors and no
// clock of its own. An actor of package actors turns messages, timers and replies into its events, and carries out the
// effects that come back.
//
// # States
//
// A Pool has the requests that wait (queue), the permits to give back (pendingReturns), the requests for other commands
// (changes), and at most one command under way (op).
//
//	request   waiting ─▶ granted
//	             └─▶ refused: too few permits, timed out, cancelled, rejected, closed
//	return    pending ─▶ under way ─▶ given back
//	             │           └─▶ rejected ─▶ under way again, until it is given back or forgotten
//	             └─▶ handed off to a request that waits here
//	change    pending ─▶ under way ─▶ answered
//	command   none ─▶ in flight ◀─▶ paused after a failure
//	                      └─▶ none
//
// # Events and effects
//
// An event is a request, a reply, a message, the time (Tick), or the end of the System. First it ends what is over by
// then (begin), and in the end it starts what can be done next (settle): a hand-off, a command, a subscription.
//
// Its effects are commands (Send), answers (Reply), subscriptions (Subscribe, Unsubscribe), and reports for the log
// (ReturnRejected, Forgotten).
//
// # Rules
//
//  1. A permit that Redis has given to the process serves one request, is given back, or is reported (Forgotten).
//  2. No request overtakes another of the process, however few permits it wants.
//  3. Redis carries out each command once, however often it is sent.
//  4. Each request is answered in bounded time, even if its command goes on.
//  5. While requests wait, the next try always has a time, since a message may be lost.
//  6. A process hands permits off for a bounded time. Then it leaves them to other processes that wait.
//
// # Permits
//
// Redis has the number of free permits. Any process may give permits back, not only the process that has taken them:
// permits have no owner, and the permits of a process that has died stay taken.
//
// A process contends once for all its waiting requests. One command names how many permits each of the first of them
// wants, and Redis takes them for as many of these, from the head, as there are permits for. Permits are alike: the
// request at the head when a reply comes gets them, and permits whose request has left are given back.
//
// # One command
//
// Commands add and subtract, so an unanswered command is sent again under its number until it has a reply, for half an
// hour at most, and Redis carries out each number once (see scripts/common/once.lua). A command with another number is
// sent only when the outcome of the last one is known or does not matter; from then on Redis carries out no late copy
// of the last one. The kinds take turns.
//
//	opTake     ends when it is known how many were served, also if all waiters have left
//	opGive     ends when it is known that the permits are back
//	opChange   ends with the wait of its request; only a Drain goes on, to give back the permits that it has taken
//	opLeave    ends when the entry has left the wait queue, or has expired
//
// Redis may reject a command permanently (NOPERM, for example). If an earlier try may have taken permits or given some
// back, the command is repeated with growing pauses, and at once when a new request comes; if Redis rejects that try,
// the new request is refused, too. If no try was carried out, the requests that the command was for are refused.
// Permits that no request awaits are then given back by later commands, for at most half an hour, and other commands
// are sent in between.
//
// # Local hand-off
//
// While others wait in the process, permits that are given back go to them in memory. A turn begins with the first
// hand-off. When it has lasted for the hand-off limit, the next permits that come back ask Redis whether other
// processes wait (Yield). If so they are given back, and the process leaves the wait queue and does not try for
// machine.Config.OpenTime. Otherwise a new turn begins. Some processes wait without listening, so a yield gives the
// permits back now and then in any case.
//
// # Waiting
//
// The first try is made at once. After a refusal the process has an entry in the wait queue, which wants the permits of
// its first waiter, and the pool subscribes to its channel. It tries again when the subscription is confirmed, when a
// message comes, and before the entry expires. The free permits are for the first entries, as far as they suffice: so
// the process that Redis wakes finds them. It leaves the queue when it has no waiter, also if it reaches Redis only
// later, and goes to its end when only some of its requests were served.
//
// # Latches
//
// The same rules decide about the count of a latch: requests that wait until it is zero contend as if for permits, and
// count-downs are given back. All waiting requests go on together, and nothing is handed off. What differs is in the
// methods of Pool.counter.
//
// # Files
//
//	pool.go      the state
//	requests.go  the requests
//	step.go      the other events, what every event does, and which command is next
//	op.go        the kinds of commands; sending one, and sending it again
//	take.go      opTake: contending for permits
//	give.go      opGive: giving permits back
//	change.go    opChange: commands that do not wait for permits
//	leave.go     opLeave: leaving the wait queue
//	waiters.go   the requests that wait: served, or refused
//	hand_off.go  handing permits off, and turns
//	rejects.go   permits whose return Redis rejects
//	counter.go   what differs between permits and latches
//	latch.go     the count of a latch
//	end.go       the end of the System, or of the actor
//	effects.go   effects, commands and answers
package semaphore
