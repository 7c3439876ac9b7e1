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
	// Rest makes the call that is run after a reply whose first number is 2, and whose reply is
	// the one to both: the part of a script that needs a key on another server, while a cluster
	// moves the slot. It has a script, keys and arguments, and runs within the Deadline of this.
	Rest func(*Call) Call
	To   Receiver
	Seq  uint64
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

// read takes a reply apart. One of another shape comes from something that is not Redis,
// or not as we know it, and must not be taken for anything.
func (c *Call) read(result rueidis.RedisResult) Reply {
	message, err := result.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		if !c.Script.Reply.Nil {
			return Reply{Err: errMisfit}
		}
		return Reply{Nil: true}
	case err != nil:
		return Reply{Err: Sort(err)}
	}
	elements := []rueidis.RedisMessage{message}
	if message.IsArray() {
		if elements, err = message.ToArray(); err != nil {
			return Reply{Err: Sort(err)}
		}
	}
	var reply Reply
	numbers, texts := 0, 0
	for i := range elements {
		if n, err := elements[i].ToInt64(); err == nil && elements[i].IsInt64() && numbers < len(reply.N) {
			reply.N[numbers] = n
			numbers++
		} else if s, err := elements[i].ToString(); err == nil && texts < len(reply.S) {
			reply.S[texts] = s
			texts++
		} else {
			return Reply{Err: errMisfit}
		}
	}
	if numbers != c.Script.Reply.Numbers || texts != c.Script.Reply.Texts {
		return Reply{Err: errMisfit}
	}
	return reply
}
