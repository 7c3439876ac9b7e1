// Package redismodel says what Redis does with the scripts, in Go: what one lock's keys hold,
// what a command makes of them, and what it replies and publishes. It is for tests alone.
//
// A Server is a value. Copying it is cheap, and what happens to a copy leaves no trace in
// the original: no slice is ever changed in place. So it serves both worlds that run once
// and explorations that try everything from every state. Time is a value too.
//
// The model is checked against a real server by random sequences of commands (see the
// tests of internal/protocol). There is a file for each kind of lock, as in internal/protocol.
package redismodel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// Kind is a kind of lock on one Redis.
type Kind uint8

// The kinds. A read/write lock that is a part of several is wanted in one mode. A reentrant
// lock that is a part of several draws no tokens, and a fenced one does; alone they are the same.
const (
	Reentrant Kind = iota
	Fenced
	Fair
	ReadWrite
	ReadPart
	WritePart
)

// MostParts bounds the locks of a MultiLock in the model.
const MostParts = 2

// Client is one client of the server: the first half of an owner field.
type Client int16

// Owner is an owner field. Terms begin at 1, so that the zero Owner is nobody.
type Owner struct {
	Client Client
	Term   uint64
}

func (o Owner) String() string { return fmt.Sprintf("%d:%d", o.Client, o.Term) }

// Setup is what never changes about a server.
type Setup struct {
	// Kinds has one kind, or those of a MultiLock's parts.
	Kinds []Kind
	// WaiterTimeout and Line are those of protocol.Options.
	WaiterTimeout time.Duration
	Line          WaitQueue
	// Rate is how fast the server's clock runs compared with that of the processes; 0 is 1.
	Rate float64
	// Name spells a field as replies do.
	Name func(Owner) string
	// Pick chooses one of several fields where Redis does so at random; nil is the first.
	Pick func(fields []Field) int
}

// Server is a Redis as far as one lock can see it.
type Server struct {
	setup         *Setup
	now           lock.Instant
	parts         [MostParts]Lock
	subscriptions []subscription
}

// subscription is a client that listens to a channel.
type subscription struct {
	client  Client
	channel Owner
}

// Publication is a message about a lock. Its channel is the lock's own or, if To is
// somebody, that of a waiter in a fair lock's queue, or of a client that gets a transfer.
type Publication struct {
	Part int
	To   Owner
	// All wakes all who wait, and not only one: how Redisson spells it.
	All bool
	// Transfer is what a client is told on its turn channel.
	Transfer lock.Transfer
}

// New is an empty server.
func New(setup *Setup) Server { return Server{setup: setup} }

// Parts are the locks that the server keeps.
func (s *Server) Parts() []Lock { return s.parts[:len(s.setup.Kinds)] }

// Part is one of them.
func (s *Server) Part(i int) *Lock { return &s.parts[i] }

// At lets the time come, and with it the end of what has a TTL.
func (s *Server) At(now lock.Instant) {
	s.now = max(s.now, now)
	for i := range s.Parts() {
		s.parts[i].expire(s.now)
	}
}

// NextEnd is when a TTL runs out next. Not that of a queue: all in it are dead long before.
func (s *Server) NextEnd() (at lock.Instant, ok bool) {
	var ends []lock.Instant
	for _, l := range s.Parts() {
		if !l.Free() {
			ends = append(ends, l.ExpiresAt)
		}
		for _, p := range l.Line {
			ends = append(ends, p.Until)
		}
		if l.OpenUntil > s.now {
			ends = append(ends, l.OpenUntil)
		}
		for _, r := range l.ReadLeases {
			ends = append(ends, r.Until)
		}
	}
	if len(ends) == 0 {
		return 0, false
	}
	return slices.Min(ends), true
}

// Clock is the server's time of day.
func (s *Server) Clock() time.Duration { return s.fast(s.now).Truncate(time.Millisecond) }

func (s *Server) fast(d time.Duration) time.Duration {
	return time.Duration(float64(d) * cmp.Or(s.setup.Rate, 1))
}

// end is when a TTL that is set now runs out. It is sent in whole milliseconds, and the
// server counts it from the millisecond that it is in.
func (s *Server) end(lease time.Duration) lock.Instant {
	lease = (lease + time.Millisecond - 1).Truncate(time.Millisecond)
	return time.Duration(float64(s.Clock()+lease) / cmp.Or(s.setup.Rate, 1))
}

// left is the rest of a TTL. To set it again moves the end by nothing.
func (s *Server) left(end lock.Instant) time.Duration {
	return s.fast(end).Round(time.Millisecond) - s.Clock()
}

// Subscribe gets a client the messages of the lock's channels or, if the channel is
// somebody's, of that waiter's in a fair lock's queue.
func (s *Server) Subscribe(c Client, channel Owner) {
	if one := (subscription{c, channel}); !slices.Contains(s.subscriptions, one) {
		s.subscriptions = append(slices.Clip(s.subscriptions), one)
	}
}

// Unsubscribe ends that.
func (s *Server) Unsubscribe(c Client, channel Owner) {
	ends := func(e subscription) bool { return e == subscription{c, channel} }
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), ends)
}

// Hangup ends all subscriptions of a client.
func (s *Server) Hangup(c Client) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(e subscription) bool { return e.client == c })
}

// Subscribers is how many listen to a channel: how PUBSUB NUMSUB counts them.
func (s *Server) Subscribers(channel Owner) int { return len(s.Hearers(Publication{To: channel})) }

// Subscriptions is how many subscriptions to channels of locks there are in all.
func (s *Server) Subscriptions() (n int) {
	for _, e := range s.subscriptions {
		if e.channel.Term != turns {
			n++
		}
	}
	return n
}

// Hearers lists who is sent a publication, in the order in which they have subscribed.
func (s *Server) Hearers(p Publication) (all []Client) {
	for _, e := range s.subscriptions {
		if e.channel == p.To {
			all = append(all, e.client)
		}
	}
	return all
}

// Delete deletes the hash of a part.
func (s *Server) Delete(part int) { s.parts[part].Holders = nil }

// Flush forgets all keys.
func (s *Server) Flush() { s.parts = [MostParts]Lock{} }

// Restart is the end of the server, and another one in its place that remembers nothing.
// Whoever wants to hear must subscribe again.
func (s *Server) Restart() {
	s.Flush()
	s.subscriptions = nil
}

// run is one command of one client, while it runs.
type run struct {
	*Server
	client Client
	lock.Command
	owner Owner
	told  []Publication
}

// Run carries out a command of a client as the scripts do, and tells what was published. Of a
// MultiLock, one part alone carries it out, unless the part is negative.
func (s *Server) Run(client Client, part int, c lock.Command) (answer lock.Result, told []Publication) {
	r := run{Server: s, client: client, Command: c, owner: Owner{client, c.Term}}
	switch {
	case part >= 0:
		answer = r.part(part)
	case len(s.setup.Kinds) > 1:
		answer = r.several()
	default:
		answer = r.one(0)
	}
	return answer, r.told
}

// one carries the command out on one part.
func (r *run) one(part int) lock.Result {
	switch r.setup.Kinds[part] {
	case Fair:
		return r.fair(part)
	case ReadWrite, ReadPart, WritePart:
		return r.readWrite(part)
	default:
		return r.reentrant(part)
	}
}

func (r *run) publish(p Publication) { r.told = append(r.told, p) }

func result(o lock.Outcome) lock.Result { return lock.Result{Outcome: o} }
