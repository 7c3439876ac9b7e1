package protocol

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// ExpirableSemaphore is an expirable semaphore on one Redis.
type ExpirableSemaphore struct {
	// Channel is the channel on which free permits are published.
	Channel string

	keys []string // the last ones are the time at which the number is restored, and for which client permits are reserved
}

// NewExpirableSemaphore returns an expirable semaphore. name is the key of the number of free permits.
func NewExpirableSemaphore(name, client string) *ExpirableSemaphore {
	return &ExpirableSemaphore{
		Channel: keyspace.PermitsChannel(name),
		keys: []string{
			name, keyspace.Taken(name),
			keyspace.Calls(name) + ":" + client, keyspace.Calls(name) + ":restore", keyspace.Calls(name) + ":kept",
		},
	}
}

// Call makes the call of a command.
func (s *ExpirableSemaphore) Call(c *expirable.Command, deadline time.Time) redisclient.Call {
	call := redisclient.Call{Keys: s.keys[:3], Args: []string{strconv.FormatUint(c.Number, 10), s.Channel}, Deadline: deadline, Seq: c.Seq}
	switch c.Kind {
	case expirable.Acquire:
		call.Script, call.Confirm, call.Args = scripts.ExpirableAcquire, true, append(call.Args, s.keys[4], ms(c.Reserve))
	case expirable.Release:
		call.Script, call.Urgent, call.Args = scripts.ExpirableRelease, true, append(call.Args, s.keys[3])
	case expirable.Renew:
		call.Script, call.Urgent, call.Renews, call.Confirm = scripts.ExpirableRenew, true, true, true
		call.Keys, call.Args = s.keys[1:2], []string{ms(c.Lease)}
	case expirable.Set:
		call.Script, call.Keys, call.Confirm = scripts.ExpirableSet, s.keys[:4], true
		call.Args = append(call.Args, string(c.Mode), strconv.Itoa(c.Count))
		if c.Mode == expirable.Restore {
			call.Args = append(call.Args, ms(c.Lease))
		}
		for i, id := range c.IDs {
			call.Args = append(call.Args, ms(c.Leases[i]), string(id[:]))
		}
		return call
	}
	ids := c.IDs
	for i, n := range c.Counts {
		if c.Kind == expirable.Acquire {
			call.Args = append(call.Args, ms(c.Leases[i]))
		}
		call.Args = withIDs(append(call.Args, strconv.Itoa(n)), ids[:n])
		ids = ids[n:]
	}
	if c.Kind == expirable.Renew {
		call.Args = withIDs(call.Args, ids)
	}
	return call
}

func withIDs(args []string, ids []machine.PermitID) []string {
	for _, id := range ids {
		args = append(args, string(id[:]))
	}
	return args
}

// DeleteRecord is like Semaphore.DeleteRecord.
func (s *ExpirableSemaphore) DeleteRecord(number uint64, deadline time.Time) redisclient.Call {
	return deleteRecord(s.keys[2], number, deadline)
}

// ReadExpirable returns the result of a command from its reply.
func ReadExpirable(c *expirable.Command, reply redisclient.Reply) (r expirable.Result) {
	if err := reply.Err; err != nil {
		return expirable.Result{Failure: machine.Failure{Err: err, Transient: err.Transient, Unsure: err.Unsure}}
	}
	switch c.Kind {
	case expirable.Acquire:
		r.Missing = reply.N[0] == scripts.NoKey
		r.Served, r.Wait = max(int(reply.N[0]), 0), milliseconds(reply.N[1])
	case expirable.Release:
		for i := range c.Counts {
			r.Valid = append(r.Valid, reply.N[0]>>i&1 == 1)
		}
		r.Receivers = int(reply.N[1])
	case expirable.Renew:
		if len(reply.S[0]) != len(c.IDs) {
			return expirable.Result{Failure: machine.Failure{Err: unexpected(reply).Err, Transient: true, Unsure: true}}
		}
		for _, digit := range reply.S[0] {
			r.Valid = append(r.Valid, digit == '1')
		}
	case expirable.Set:
		r.Done, r.Wait = reply.N[0] == 1, milliseconds(max(-reply.N[0], 0))
	}
	switch why := reply.Unconfirmed; {
	case why == nil:
	case c.Kind == expirable.Set:
		// It was carried out: repeat it; see ReadNumbers.
		return expirable.Result{Failure: machine.Failure{Err: why, Transient: true, Unsure: true}}
	case c.Kind == expirable.Renew, r.Served > 0:
		return expirable.Result{Failure: machine.Failure{Err: why, Transient: why.Transient, Unsure: true, Unconfirmed: true}}
	}
	return r
}

// RefusedUnset reports whether, by the record of a client's last command, "<number> <reply>", the client was refused
// permits because their number is not set, and whether the semaphore is an expirable one.
func RefusedUnset(record string) (refused, expire bool) {
	words := strings.Fields(record)
	if len(words) != 3 || words[1] != strconv.FormatInt(scripts.NoKey, 10) {
		return false, false
	}
	return true, words[2] != "0"
}

// Inspect makes the call that counts the permits.
func (s *ExpirableSemaphore) Inspect(deadline time.Time) redisclient.Call {
	return redisclient.Call{Script: scripts.ExpirableInspect, Keys: s.keys[:2], Deadline: deadline}
}

// ErrNoNumber is the error if the number of permits is not set.
var ErrNoNumber = errors.New(machine.NoNumber)

// ViewExpirable reads the reply to Inspect. It returns ErrNoNumber if the number of permits is not set.
func ViewExpirable(reply redisclient.Reply) (View, error) {
	switch {
	case reply.Err != nil:
		return View{}, reply.Err
	case reply.S[0] == "":
		return View{}, ErrNoNumber
	}
	return View{TTL: -1, FreePermits: reply.N[0], TakenPermits: reply.N[1], AllPermits: reply.N[2]}, nil
}
