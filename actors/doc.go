// Package actors runs locks as proto.actor actors. It is not an API: its functions take internal types, and change
// without notice. Programs import package lockkeeper.
//
// # The tree
//
//	guardian            one per System; the address for all requests
//	├── subscriber      one; owns the pub/sub connection, forwards releases and transfers
//	├── shell           a PID and a mailbox
//	│     lock actor     one per lock, semaphore or latch that is in use; its shell passes the messages to it
//	├── shell
//	│     lock actor
//	└── …
//	middleware actor    one per lock, if Config.Middleware is set; a child of the root
//
// The guardian spawns a lock actor, in a shell, at the first request for its key (guardian.go, spawn.go). It passes
// requests to the lock actor, supervises it, and stops it when it has been idle for Config.Idle. A plain and a fenced
// lock with the same key in Redis share one actor; for another kind, an idle actor leaves. A MultiLock and a RedLock
// have their own lock actors.
//
// To proto.actor, a shell and its lock actor are one actor (package shell). A shell has one lock actor at a time: if
// there are more than 1,024, idle lock actors leave early, and their shells go to the next locks. A request names its
// key, and any other message names its lock actor, so a late message does not reach the next lock actor of the shell.
//
// # A lock actor
//
// lock_actor.go has the state of a lock actor, and all messages that it handles. A machine makes the decisions: a
// lock.Lock, an expirable.Semaphore or a semaphore.Pool. The actor turns requests, timers and replies into events of
// its machine, and carries out the effects that the machine returns (effects.go): commands to Redis, answers, and
// notifications of a loss. A kinds.Adapter does everything that differs between kinds. The actor never waits: a command
// goes out through package backend, and its reply comes back as a message.
//
// Requests come as a request.Call. A goroutine makes its Call itself; the guardian turns each message into a Call.
// Requests that cannot be granted yet wait in the machine's queue (internal/requestqueue).
//
// The path of a command, from a request to its answer:
//
//	request.Call → lock_actor.go → machine → effect Send → kinds.Adapter → backend → protocol → scripts/*.lua
//	answer       ← effect Reply  ← machine ← kinds.Reply, a message      ← redisclient ← Redis
//
// The functions on this way, for a plain lock. Acquire only puts the request into the queue; settle, deferred, then
// does what the state allows, and adds effects; perform carries them out:
//
//	lockActor.Receive → requested → acquire → handle → step → lock.Lock.Acquire → settle → advance → attempt → start →
//	send (the effect Send)
//	lockActor.carryOut → performAll → perform → lockAdapter.Send → single.Run: protocol.Lock.Call makes a
//	redisclient.Call of the script, which redisclient.Redis.Run sends → pool.work → Call.command: EVALSHA
//
// If the goroutine that made the request waits, and only the answer ends its wait, the goroutine runs the call itself:
// single.Run lends the call to it (lockActor.Lend).
//
// The path of a renewal:
//
//	lock.Lock.NextWake → lockActor.setAlarm → alarm.Alarm → lockActor.Wake → wakeUp, a message to itself →
//	lockActor.tick → lock.Lock.Tick → advance → startRenewal → lockActor.perform → lockAdapter.Send → single.Run →
//	redisclient.Redis.Renew, which renews many locks with one script
//
// # Releases and transfers
//
// The subscriber forwards every message on the channels of a lock to its lock actor. A message means that the lock may
// be free, which is a reason to ask Redis. It also subscribes to the turn channel, on the same connection, before all
// other channels, and until Close. On the turn channel another process announces that it has transferred a lock to this
// system, which grants the lock. A lock actor that misses a message finds out with its next try.
//
// In a cluster with sharded pub/sub there is a connection to each master that has channels, and each lock that is
// waited for has its own turn channel, since a channel belongs to a slot there.
//
// # Supervision
//
// The guardian is resumed when it panics, and never restarted, since a restart would stop its children. The subscriber
// is resumed, and loses only the hint that it was handling. A lock actor is restarted with the same state. A lock actor
// that crashes more than 10 times within 10 s is given up: its holders are notified of the loss, its waiters are
// refused, its key is released, and then it stops. No failure is escalated to the host's actors.
//
// # How a lock actor leaves
//
//	retire         it is idle: for Config.Idle, or while there are many lock actors, or at Close
//	otherKind      it is idle, and a request wants another kind of lock under its key
//	giveUp         it has crashed too often, was stopped, or Close no longer waits for Redis; endAll answers all
//	ending         its state after giveUp and otherKind, until the guardian stops it
//	letGo, gone    it is certain to leave, and ends its watches and its alarm; it has left
//	late           a reply from Redis after giveUp; settleLate handles any message after the stop
//
// A kinds.Adapter does its part of these in Retires (before the gate closes), Cleanups, Abandon, Late and Gone.
//
// # What survives a crash of a lock actor
//
// A crash loses nothing: holder, hold count, queue, lease and renewals are in the lockActor, and a restart continues
// with them. An event is applied to a copy of the lock, which then replaces the original in one assignment; effects not
// yet carried out are part of the copy. The message that was being handled is answered with CRASHED if it was a
// request, and handled again if nothing else would repeat it. All of this happens in the actor's own mailbox, before
// the supervisor learns of the crash. The state therefore needs no mutex: only the actor touches it.
//
// # Scheduling
//
// The guardian, the lock actors and the subscriber have a mailbox of package internal/mailbox. If its actor is not
// running, the mailbox runs it on the sender's goroutine: handling a message takes a microsecond or two, less than
// waking another goroutine. After 16 messages the actor moves to a goroutine of the System, so no sender works for all
// other senders. The guardian always runs on such a goroutine, since it must not run inside a lock actor that sends to
// it.
//
// A stopping actor of proto.actor drops its messages; a lock actor answers them (see package delivery). A gate counts
// the requests on their way to a lock actor, which retires only after it has seen all of them.
//
// # Goroutines
//
//	goroutines     up to 8 that stay for a second without work; they run mailboxes
//	clocks         4; they share the lock actors, and wake those for which something is due
//	middleware     1 for each request that it handles
//	watches        1 for each lock that is watched; see package internal/watch
//	beat           1; it makes the clocks read the time again when the machine wakes up
//	host queues    up to 4; they run the host's log handler, meter, tracer and event subscribers
//	redisclient    up to 25, in a cluster or with Replicas more; see package redisclient
//
// Host code (middleware, log handler, meter, tracer, event-stream subscribers) may block or panic. It runs where
// nothing waits for it (see package internal/host), and after holders are notified.
//
// # Callers that are goroutines
//
// The Call of a goroutine bypasses the guardian: it finds its lock actor in a table, or starts a lock actor in a free
// shell. The goroutine waits on a future. A caller that would only wait may get an errand: it runs a script on its own
// goroutine, which saves two wake-ups.
package actors
