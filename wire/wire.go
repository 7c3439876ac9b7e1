// Package wire says what a lock's commands are in Redis: which script, on which keys,
// with which arguments, and what its reply means. The keys, fields, channels and
// payloads are Redisson's; there is a file for each kind of lock.
package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Kind is a kind of lock on one Redis. The numbers are those of the Kind enumeration
// in package messages.
type Kind uint8

// The kinds.
const (
	Reentrant Kind = iota
	_              // fenced: a reentrant lock, some of whose acquires draw a token
	Fair
	ReadWrite
)

// Options are what the commands depend on besides the lock.
type Options struct {
	// Client is the client part of the owner fields, a UUID.
	Client string
	// Silence is how long a waiter that is not heard of keeps its place in a fair lock's queue.
	Silence time.Duration
	// Announcement is how long a waiting writer is known to readers elsewhere, unless
	// it says so again.
	Announcement time.Duration
}

// Lock is one lock on one Redis.
type Lock struct {
	Kind Kind
	Key  string
	// Channel is where its release is told; of a fair lock, how those channels begin.
	Channel string
	// Tokens is the counter of its fencing tokens, if it may have one.
	Tokens string

	options *Options
	form    form
	keys    [1]string // Key alone
	// queue and timeouts are those of a fair lock. holds is how the keys of a read/write
	// lock's read leases begin, writer the key of a waiting writer's announcement.
	queue, timeouts string
	holds, writer   string
	// field is the owner field of the term fieldTerm, the last that was asked for.
	field     string
	fieldTerm uint64
}

// form is what sets a kind apart.
type form interface {
	// call makes the command's call, and says how to read its reply.
	call(l *Lock, c core.Command) (redisio.Call, reading)
	// inspect looks at the lock.
	inspect(l *Lock) (redisio.Call, reading)
	renewal() *scripts.Script
}

// New describes a lock. name is its key.
func New(kind Kind, name string, options *Options) *Lock {
	l := &Lock{Kind: kind, Key: name, Channel: redisio.Channel(name), options: options, keys: [1]string{name}}
	switch kind {
	case Fair:
		l.form, l.queue, l.timeouts = fair{}, redisio.Queue(name), redisio.Timeouts(name)
	case ReadWrite:
		l.form, l.Channel = readWrite{}, redisio.ReadWriteChannel(name)
		l.holds, l.writer = redisio.Holds(name), redisio.Writer(name)
	default:
		l.form, l.Tokens = reentrant{}, redisio.Token(name)
	}
	return l
}

// hash is all that a script names as its KEYS: the one key that is there whenever the lock is
// held. While a cluster moves the slot, that key decides which server runs the script; with
// several, of which some are missing, Redis would run it nowhere.
func (l *Lock) hash() []string { return l.keys[:] }

// Owner is the field that a term has in Redis.
func (l *Lock) Owner(term uint64) string {
	if term != l.fieldTerm {
		l.field, l.fieldTerm = l.options.Client+":"+strconv.FormatUint(term, 10), term
	}
	return l.field
}

// ownTerm is the term of a field of this client's own, else 0.
func (l *Lock) ownTerm(field string) uint64 {
	number, ours := strings.CutPrefix(strings.TrimSuffix(field, ":write"), l.options.Client+":")
	if !ours {
		return 0
	}
	term, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return term
}

// ChannelOf is where the release of the lock is told to a waiter of that term.
func (l *Lock) ChannelOf(term uint64) string {
	if l.Kind == Fair {
		return l.Channel + ":" + l.Owner(term)
	}
	return l.Channel
}

// Call is the command as redisio takes it.
func (l *Lock) Call(c *core.Command, deadline time.Time) redisio.Call {
	call, how := l.form.call(l, *c)
	call.Deadline = deadline
	call.Urgent = c.Kind != core.Acquire && c.Kind != core.Enrol
	return tagged(call, c.Seq, how)
}

// Renewal is the command of that kind as redisio takes it.
func (l *Lock) Renewal(c *core.Command, deadline time.Time) redisio.Renewal {
	n := redisio.Renewal{
		Script: l.form.renewal(), Key: l.Key, Owner: l.Owner(c.Term), Lease: c.Lease, Now: c.Hurry,
		Deadline: deadline, Seq: c.Seq<<readingBits | uint64(renewed),
	}
	if l.Kind == ReadWrite {
		n.Extra = []string{l.holds}
	}
	return n
}

func ms(d time.Duration) string {
	return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10)
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
