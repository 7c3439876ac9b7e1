package redisclient

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Call is one script to run.
type Call struct {
	Script *scripts.Script
	Keys   []string
	Args   []string
	// Urgent calls (renewals, releases) have separate workers, so that many acquires cannot delay
	// them.
	Urgent bool
	// Renews marks a call that renews leases. Its reply may be late, so it has separate workers in a
	// cluster.
	Renews bool
	// Confirm makes the call wait until the replicas of AwaitReplicas have the writes of the script; see
	// Reply.Unconfirmed.
	Confirm bool
	// Format says how the caller is to read the reply: it is Reply.Format.
	Format uint8
	// Optional marks a call that no other call depends on. Its sender reports a rejection, which says nothing about
	// other calls.
	Optional bool
	// Deadline bounds the wait for the reply. A call that is still queued at the deadline is not
	// sent.
	Deadline time.Time
	// Second is run after a reply whose first number is TokensLeft. It is the part of the script that
	// needs a key on another server, while a cluster moves the slot. It runs within the same Deadline,
	// and its reply is the reply to both.
	Second Second
	To     Receiver
	Seq    uint64
}

// Second is the second script of a Call, with its one key and its one argument.
type Second struct {
	Script   *scripts.Script
	Key, Arg string
}

// Receiver receives the replies to its calls, on a goroutine of the pool. It must not block.
type Receiver interface {
	Replied(seq uint64, r Reply)
}

// Reply is the outcome of one call.
type Reply struct {
	// Nil reports a nil reply.
	Nil bool
	// Format is the Format of the Call or the Renewal.
	Format uint8
	// N are the integers of the script's reply, in order.
	N [3]int64
	// S are the strings of the script's reply, in order.
	S   [2]string
	Err *redisio.Error
	// Unconfirmed is why it is not certain that the replicas have the writes of the script. It is nil if they have
	// them, or if Call.Confirm is false.
	Unconfirmed *redisio.Error
}

// reply delivers the reply to the call.
func (c *Call) reply(r Reply) {
	r.Format = c.Format
	c.To.Replied(c.Seq, r)
}

func (c *Call) command(b rueidis.Builder) rueidis.Completed {
	return b.Evalsha().Sha1(c.Script.SHA).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

// withSource returns the command for a server that does not have the script in its cache. The command puts the script
// there.
func (c *Call) withSource(b rueidis.Builder) rueidis.Completed {
	return b.Eval().Script(c.Script.Source).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

// read converts a reply of Redis. It returns errUnexpectedReply for a reply that the script cannot have given.
func (c *Call) read(result rueidis.RedisResult) Reply {
	message, err := result.ToMessage()
	switch {
	case rueidis.IsRedisNil(err):
		if !c.Script.Reply.Nil {
			return Reply{Err: errUnexpectedReply}
		}
		return Reply{Nil: true}
	case err != nil:
		return Reply{Err: redisio.Classify(err)}
	}
	elements := []rueidis.RedisMessage{message}
	if message.IsArray() {
		if elements, err = message.ToArray(); err != nil {
			return Reply{Err: redisio.Classify(err)}
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
			return Reply{Err: errUnexpectedReply}
		}
	}
	if numbers != c.Script.Reply.Numbers || texts != c.Script.Reply.Texts {
		return Reply{Err: errUnexpectedReply}
	}
	return reply
}
