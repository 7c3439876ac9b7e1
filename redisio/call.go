package redisio

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Call is one script to run.
type Call struct {
	Script *scripts.Script
	Keys   []string
	Args   []string
	// Urgent calls (renewals, releases) are served before the others and by
	// workers of their own, so that a storm of acquires cannot hold them up.
	Urgent bool
	// Deadline bounds the wait for the reply. A call that is still queued then is
	// not sent any more.
	Deadline time.Time
	To       Receiver
	Seq      uint64
}

// Receiver is told the outcome of its calls, from a goroutine of the pool; it
// must not block.
type Receiver interface {
	Replied(seq uint64, r Reply)
}

// Reply is the outcome of one call. The integers and the strings of the script's
// reply are in N and S, in their order; Nil says that it was nil.
type Reply struct {
	Nil bool
	N   [3]int64
	S   [2]string
	Err *Error
}

func (c *Call) command(b rueidis.Builder) rueidis.Completed {
	return b.Evalsha().Sha1(c.Script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

// withSource is the same call for a server that does not know the script (any more);
// running it makes the server remember it.
func (c *Call) withSource(b rueidis.Builder) rueidis.Completed {
	return b.Eval().Script(c.Script.Source).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func read(result rueidis.RedisResult) Reply {
	message, err := result.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		return Reply{Nil: true}
	case err != nil:
		return Reply{Err: Sort(err)}
	}
	var reply Reply
	numbers, texts := 0, 0
	take := func(m *rueidis.RedisMessage) {
		if n, err := m.ToInt64(); err == nil && m.IsInt64() {
			if numbers < len(reply.N) {
				reply.N[numbers] = n
				numbers++
			}
		} else if s, err := m.ToString(); err == nil && texts < len(reply.S) {
			reply.S[texts] = s
			texts++
		}
	}
	if !message.IsArray() {
		take(&message)
		return reply
	}
	elements, err := message.ToArray()
	if err != nil {
		return Reply{Err: Sort(err)}
	}
	for i := range elements {
		take(&elements[i])
	}
	return reply
}
