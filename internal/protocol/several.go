package protocol

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Member is a lock that is part of a MultiLock or a RedLock, with the mode in which to take it.
type Member struct {
	*Lock
	Mode machine.Mode
	// Fenced: the member draws a fencing token.
	Fenced bool
}

// Command returns the command for this member.
func (m Member) Command(c lock.Command) lock.Command {
	if m.isShared() {
		c.Count, c.Shared = 0, c.Count
	}
	c.Mode, c.Entry.Mode, c.Entry.Reserves = m.Mode, m.Mode, true
	if !m.Fenced {
		c.Tokens, c.Above = 0, nil
	}
	c.Above = c.Above[:min(len(c.Above), 1)]
	return c
}

func (m Member) isShared() bool { return m.Mode == machine.Shared && m.Form.Member.Shared != "" }

// form returns the word for the member's form in scripts about several locks, and its keys; see format.member.
func (m Member) form() (word, argKey string, keys [2]string) {
	argKey, keys = m.format.member(m.Lock)
	switch words := &m.Form.Member; {
	case m.Fenced:
		keys[0] = m.Tokens
		return words.Fenced, argKey, keys
	case m.isShared():
		return words.Shared, argKey, keys
	default:
		return words.Word, argKey, keys
	}
}

// AcquireAll returns the call that takes all of several locks or none, in one script. They must be in one slot.
func AcquireAll(members []Member, c *lock.Command, deadline time.Time) redisclient.Call {
	first := members[0]
	whole := lock.Command{Seq: c.Seq, Entry: c.Entry}
	whole.Entry.Reserves = true
	call := redisclient.Call{
		Script: scripts.AcquireAll, Format: allAcquired, Confirm: true, Deadline: deadline, Seq: c.Seq,
		Args: []string{first.Owner(c.Term), ms(c.Lease), tokens(c), first.waitQueueSettings(), entry(&whole), digit(c.Notified)},
	}
	for _, m := range members {
		word, argKey, keys := m.form()
		call.Keys = append(call.Keys, m.Key(), keys[0], keys[1])
		call.Args = append(call.Args, word, argKey, m.waitQueue)
	}
	return call
}

// YieldAll returns the call that releases several locks, and adds their owner's entry at the end of their wait
// queues, in one script. They must be in one slot, and none of them fair.
func YieldAll(members []Member, c *lock.Command, deadline time.Time) redisclient.Call {
	first := members[0]
	whole := lock.Command{Seq: c.Seq, Entry: c.Entry}
	whole.Entry.Reserves = true
	call := redisclient.Call{
		Script: scripts.YieldAll, Format: yielded, Urgent: true, Deadline: deadline, Seq: c.Seq,
		Args: []string{first.Owner(c.Term), first.waitQueueSettings(), entry(&whole)},
	}
	for _, m := range members {
		word, argKey, _ := m.form()
		call.Keys = append(call.Keys, m.Key())
		call.Args = append(call.Args, word, argKey, m.waitQueue, m.Channel)
	}
	return call
}

// Refuser returns the index of the member that refused an AcquireAll.
func Refuser(reply redisclient.Reply) int {
	i, _ := strconv.Atoi(reply.S[1])
	return i - 1
}

// Memory identifies the memory of a RedLock's server: its name, and how old it is at least. Key is the key of the
// server's record.
type Memory struct {
	Key  string
	Name string
	Age  time.Duration
}

// Vote returns the call of an Acquire on one server of a RedLock. The server refuses if its
// memory is not known to be as old as quarantine. fresh is the name for a new memory.
func (l *Lock) Vote(c *lock.Command, quarantine time.Duration, known Memory, fresh string, deadline time.Time) redisclient.Call {
	return redisclient.Call{
		Script: scripts.MajorityAcquire, Format: voted, Keys: []string{l.Key(), known.Key}, Deadline: deadline, Seq: c.Seq,
		Args: []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), ms(quarantine),
			fresh, known.Name, strconv.FormatInt(known.Age.Milliseconds(), 10),
		},
	}
}

// Voted returns the name of the server's memory from a reply to Vote, and for how long the server will not vote.
// The name is empty if the reply has none.
func Voted(reply redisclient.Reply) (memory string, out time.Duration) {
	if reply.N[0] == scripts.TooNew {
		out = milliseconds(reply.N[1])
	}
	return reply.S[1], out
}

// InspectMemory returns the call that asks a server for the name and the age of its memory.
func InspectMemory(key, fresh string, deadline time.Time) redisclient.Call {
	return redisclient.Call{Script: scripts.Memory, Keys: []string{key}, Args: []string{fresh}, Deadline: deadline}
}

// ForceReleaseOf returns the call that releases a lock with one owner at a time, if one of the given owners, of any
// client, holds it.
func (l *Lock) ForceReleaseOf(owners []string, deadline time.Time) redisclient.Call {
	return l.Call(&lock.Command{Kind: lock.ForceRelease, Owners: owners}, deadline)
}
