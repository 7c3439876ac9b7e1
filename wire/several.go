package wire

import (
	"strconv"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Member is a lock that is a part of several, in the mode that it is wanted in.
type Member struct {
	*Lock
	Mode core.Mode
	// Fenced says that the member draws a fencing token.
	Fenced bool
}

// Command is the command to the whole, as this member has to see it.
func (m Member) Command(c core.Command) core.Command {
	if m.Kind == ReadWrite && m.Mode == core.Shared {
		c.Count, c.Shared = 0, c.Count
	}
	c.Mode = m.Mode
	if !m.Fenced {
		c.Tokens = 0
	}
	return c
}

// AcquireAll takes all of several locks or none, in one script. They lie in one slot.
func AcquireAll(members []Member, c *core.Command, deadline time.Time) redisio.Call {
	first := members[0]
	call := redisio.Call{
		Script: scripts.AcquireAll, Deadline: deadline,
		Args: []string{first.Owner(c.Term), ms(c.Lease), strconv.FormatInt(c.Tokens, 10)},
	}
	for _, m := range members {
		kind, keys, holds, writer := "plain", []string{m.Key, m.Key, m.Key}, "", ""
		switch {
		case m.Fenced:
			kind, keys[1] = "fenced", m.Tokens
		case m.Kind == Fair:
			kind, keys[1], keys[2] = "fair", m.queue, m.timeouts
		case m.Kind == ReadWrite:
			kind, holds, writer = "write", m.holds, m.writer
			if m.Mode == core.Shared {
				kind = "read"
			}
		}
		call.Keys = append(call.Keys, keys...)
		call.Args = append(call.Args, kind, holds, writer)
	}
	return tagged(call, c.Seq, tookAll)
}

// Refuser is which of the members has refused AcquireAll.
func Refuser(reply redisio.Reply) int {
	i, _ := strconv.Atoi(reply.S[1])
	return i - 1
}

// Memory is what a process knows of the memory of a RedLock's server: its name, and for how
// long it has been known. Key is where the server records it.
type Memory struct {
	Key  string
	Name string
	Age  time.Duration
}

// Vote is Acquire on one of several independent servers. One whose memory is not known to be
// as old as quarantine refuses. fresh names a memory that nobody has seen before.
func (l *Lock) Vote(c *core.Command, quarantine time.Duration, known Memory, fresh string, deadline time.Time) redisio.Call {
	return tagged(redisio.Call{
		Script: scripts.QuorumAcquire, Keys: []string{l.Key, known.Key}, Deadline: deadline,
		Args: []string{
			l.Owner(c.Term), strconv.Itoa(c.Count), ms(c.Lease), ms(quarantine),
			fresh, known.Name, strconv.FormatInt(known.Age.Milliseconds(), 10),
		},
	}, c.Seq, voted)
}

// Voted is the memory of the server that a reply to Vote tells, and, if it stays out, for
// how much longer. The name is empty if the server has said nothing of it.
func Voted(reply redisio.Reply) (memory string, out time.Duration) {
	if reply.N[0] == -3 {
		out = milliseconds(reply.N[1])
	}
	return reply.S[1], out
}

// LookAtMemory asks a server for the name and the age of its memory.
func LookAtMemory(key, fresh string, deadline time.Time) redisio.Call {
	return redisio.Call{Script: scripts.Memory, Keys: []string{key}, Args: []string{fresh}, Deadline: deadline}
}

// ReleaseOf releases what an owner holds of a lock that has one owner at a time, whichever
// client's it is.
func (l *Lock) ReleaseOf(owner string, deadline time.Time) redisio.Call {
	call := l.Call(&core.Command{Kind: core.Release}, deadline)
	call.Args[0] = owner
	return call
}
