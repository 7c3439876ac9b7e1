package protocol

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/semaphore"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Latch is a latch on one Redis.
type Latch struct {
	// Channel is the channel on which opening and closing are published.
	Channel string

	keys []string
}

// NewLatch returns a latch. name is the key of its count.
func NewLatch(name, client string) *Latch {
	return &Latch{
		Channel: keyspace.LatchChannel(name),
		keys:    []string{name, keyspace.Calls(name) + ":" + client, keyspace.Counted(name)},
	}
}

// Call makes the call of a command; see Semaphore.Call.
func (l *Latch) Call(c *semaphore.Command, deadline time.Time) redisclient.Call {
	call := redisclient.Call{Keys: l.keys, Deadline: deadline, Seq: c.Number, Confirm: true}
	number := strconv.FormatUint(c.Number, 10)
	switch c.Kind {
	case semaphore.Give:
		call.Script, call.Urgent = scripts.LatchCountDown, true
		call.Args = append([]string{number, l.Channel, strconv.FormatInt(c.N, 10)}, c.IDs...)
	case semaphore.Set:
		call.Script, call.Keys = scripts.LatchSet, l.keys[:2]
		call.Args = []string{number, strconv.FormatInt(c.N, 10), l.Channel}
	case semaphore.Delete:
		call.Script, call.Keys = scripts.SynchronizerDelete, l.keys[:2]
		call.Args = []string{number, l.Channel}
	default:
		call.Script, call.Keys, call.Confirm = scripts.LatchInspect, l.keys[:1], false
	}
	return call
}

// DeleteRecord is like Semaphore.DeleteRecord.
func (l *Latch) DeleteRecord(number uint64, deadline time.Time) redisclient.Call {
	return deleteRecord(l.keys[1], number, deadline)
}
