package protocol

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/permit"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Semaphore is a semaphore on one Redis, Redisson's RSemaphore: a number under its name.
type Semaphore struct {
	// Channel is where it is published how many permits are free.
	Channel string
	// keys are the semaphore, and the command record of this client.
	keys [2]string
}

// NewSemaphore describes a semaphore. name is its key.
func NewSemaphore(name, client string) *Semaphore {
	return &Semaphore{Channel: redisio.PermitsChannel(name), keys: [2]string{name, redisio.Calls(name) + ":" + client}}
}

// Call returns the command as a call of package redisio. The record is in KEYS although
// it may not exist. While a cluster moves the slot, a server then refuses the script unless it has both
// keys: without the record, the script could not tell whether it had run before.
// A command without a confirmation by replicas is sent again, like one without a reply: a master that
// has forgotten it carries it out then.
func (s *Semaphore) Call(c *permit.Command, deadline time.Time) redisio.Call {
	number := strconv.FormatUint(c.Number, 10)
	call := redisio.Call{Keys: s.keys[:], Deadline: deadline, Seq: c.Number, Args: []string{number}, Confirm: true}
	switch c.Kind {
	case permit.Take:
		call.Script = scripts.SemaphoreAcquire
		for _, n := range c.Wanted {
			call.Args = append(call.Args, strconv.Itoa(n))
		}
	case permit.Give, permit.Add:
		call.Script, call.Urgent = scripts.SemaphoreAdd, true
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), digit(c.IfExists), s.Channel)
	case permit.Yield:
		call.Script, call.Urgent = scripts.SemaphoreYield, true
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), digit(c.IfExists), s.Channel, digit(c.Listening), digit(c.Forced))
	case permit.Set:
		call.Script = scripts.SemaphoreSet
		call.Args = append(call.Args, strconv.FormatInt(c.N, 10), ms(c.TTL), s.Channel)
	case permit.Drain:
		call.Script = scripts.SemaphoreDrain
	default:
		call.Script, call.Keys, call.Args, call.Confirm = scripts.SemaphoreInspect, s.keys[:1], nil, false
	}
	return call
}

// ReadNumbers returns the meaning of a reply to the Call of a Semaphore or a Latch.
func ReadNumbers(reply redisio.Reply) permit.Result {
	if err := reply.Err; err != nil {
		return permit.Result{Err: err, Transient: err.Transient, Unsure: err.Unsure}
	}
	if why := reply.Unconfirmed; why != nil {
		// Whatever keeps the replicas from confirming it, it was carried out.
		return permit.Result{Err: why, Transient: true, Unsure: true}
	}
	return permit.Result{N: [2]int64{reply.N[0], reply.N[1]}}
}
