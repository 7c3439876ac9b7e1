package protocol

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Semaphore is a semaphore on one Redis, Redisson's RSemaphore: a number under its name.
type Semaphore struct {
	// Channel is the channel on which the number of free permits is published for clients that are not in the wait queue.
	Channel string
	// keys are the semaphore, and the command record of this client.
	keys [2]string
	// waitQueue is the key of the wait queue; settings and client are of Options.
	waitQueue, settings, client string
}

// NewSemaphore returns a semaphore. name is its key, and client the client of its command records.
func NewSemaphore(name, client string, options *Options) *Semaphore {
	return &Semaphore{
		Channel: keyspace.PermitsChannel(name), keys: [2]string{name, keyspace.Calls(name) + ":" + client},
		waitQueue: keyspace.WaitQueue(name), settings: options.WaitQueue.settings().Value(), client: options.Client,
	}
}

// Waiters returns the channel to which a waiter subscribes besides Channel.
func (s *Semaphore) Waiters() string { return keyspace.Waiters(s.keys[0]) }

// Call returns the command as a call of package redisclient. The command record is in KEYS although it may
// not exist yet. So while a cluster moves the slot, a server runs the script only if it has both keys.
// Otherwise the script could miss the record, and carry out the command a second time.
//
// A command that too few replicas confirm is sent again under its number. A master that took over without it
// then carries it out.
func (s *Semaphore) Call(c *semaphore.Command, deadline time.Time) redisclient.Call {
	number := strconv.FormatUint(c.Number, 10)
	call := redisclient.Call{Keys: s.keys[:], Deadline: deadline, Seq: c.Number, Args: []string{number}, Confirm: true}
	switch c.Kind {
	case semaphore.Take:
		call.Script = scripts.SemaphoreAcquire
		call.Args = append(call.Args, s.waitQueue, s.settings, s.client, permitEntry(c))
		for _, n := range c.Wanted {
			call.Args = append(call.Args, strconv.Itoa(n))
		}
	case semaphore.Give, semaphore.Add: // giving back creates no semaphore
		call.Script, call.Urgent = scripts.SemaphoreAdd, true
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), digit(c.Kind == semaphore.Give), s.Channel)
		call.Args = append(call.Args, s.waitQueue, s.settings, s.client, digit(c.Leaves))
	case semaphore.Yield:
		call.Script, call.Urgent = scripts.SemaphoreYield, true
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), s.Channel, s.waitQueue, s.settings, s.client, digit(c.Forced))
	case semaphore.Set:
		call.Script = scripts.SemaphoreSet
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), ms(c.TTL), s.Channel)
	case semaphore.Delete:
		call.Script = scripts.SynchronizerDelete
		call.Args = append(call.Args, s.Channel)
	case semaphore.Drain:
		call.Script = scripts.SemaphoreDrain
	default:
		call.Script, call.Keys, call.Args, call.Confirm = scripts.SemaphoreInspect, s.keys[:1], nil, false
	}
	return call
}

// permitEntry returns the entry that a Take adds or confirms, as the scripts take it; "" without one.
func permitEntry(c *semaphore.Command) string {
	if c.Entry.N == 0 {
		return ""
	}
	return string(entryText(c.Entry.TTL, c.Number, c.Number, false, int64(c.Entry.N), c.Entry.Listens))
}

// DeleteRecord returns the call that removes the record of this client's last command, unless it is of a later number.
func (s *Semaphore) DeleteRecord(number uint64, deadline time.Time) redisclient.Call {
	return deleteRecord(s.keys[1], number, deadline)
}

func deleteRecord(record string, number uint64, deadline time.Time) redisclient.Call {
	return redisclient.Call{
		Script: scripts.ForgetCommand, Keys: []string{record}, Args: []string{strconv.FormatUint(number, 10)}, Deadline: deadline,
	}
}

// ReadNumbers returns the result from a reply to the Call of a Semaphore or a Latch.
func ReadNumbers(reply redisclient.Reply) semaphore.Result {
	if err := reply.Err; err != nil {
		return semaphore.Result{Failure: machine.Failure{Err: err, Transient: err.Transient, Unsure: err.Unsure}}
	}
	if why := reply.Unconfirmed; why != nil {
		// The master has carried it out, even though replicas have not confirmed it: so the error is never
		// permanent, and the command is repeated under its number.
		return semaphore.Result{Failure: machine.Failure{Err: why, Transient: true, Unsure: true}}
	}
	return semaphore.Result{N: [2]int64{reply.N[0], reply.N[1]}}
}
