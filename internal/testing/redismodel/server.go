// Package redismodel models in Go how Redis runs the scripts: the state of one lock's keys, how a command
// changes it, and what it replies and publishes. It is only for tests.
//
// A Server is a value. Copying it is cheap, and a copy is independent of the original: no slice is ever
// changed in place. So it serves both simulations that run once and explorations that try everything from
// every state. Time is a value too.
//
//	server := redismodel.New(&redismodel.Setup{Kinds: []redismodel.Kind{redismodel.Plain}})
//	server.At(5 * time.Second) // keys expire
//	reply, published := server.Run(client, 0, lock.Command{Kind: lock.Acquire, Term: 1, Count: 1, Lease: time.Second})
//
// The model is checked against a real server by random sequences of commands (see the tests of internal/protocol). There
// is a file for each kind of lock, as in internal/protocol.
package redismodel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Kind is a kind of lock on one Redis.
type Kind uint8

// The kinds. A read/write lock that is a part of a MultiLock is taken in one mode. A plain lock that is a part draws no
// tokens, and a fenced lock does; otherwise they are the same.
const (
	Plain Kind = iota
	Fenced
	Fair
	ReadWrite
	ReadPart
	WritePart
)

var formOf = [...]*forms.Form{
	Plain: forms.Plain, Fenced: forms.Plain, Fair: forms.Fair,
	ReadWrite: forms.ReadWrite, ReadPart: forms.ReadWrite, WritePart: forms.ReadWrite,
}

// Form returns the form of the kind in Redis.
func (k Kind) Form() *forms.Form { return formOf[k] }

// MaxParts bounds the locks of a MultiLock in the model.
const MaxParts = 2

// Client is one client of the server: the first half of an owner field.
type Client int16

// Owner is an owner field. Terms begin at 1, so the zero Owner is none.
type Owner struct {
	Client Client
	Term   uint64
	// Kept: its term has ended, and the key is left to expire.
	Kept bool
}

func (o Owner) String() string {
	if o.Kept {
		return fmt.Sprintf("%d:0%d", o.Client, o.Term)
	}
	return fmt.Sprintf("%d:%d", o.Client, o.Term)
}

// Setup are the constant settings of a server.
type Setup struct {
	// Kinds has one kind, or the kinds of a MultiLock's parts.
	Kinds []Kind
	// WaiterTimeout and WaitQueue are as in protocol.Options.
	WaiterTimeout time.Duration
	WaitQueue     WaitQueue
	// Rate is the speed of the server's clock relative to the processes' clock; 0 is 1.
	Rate float64
	// Name returns an owner as replies contain it.
	Name func(Owner) string
	// Pick chooses one of several fields where Redis does so at random; nil is the first.
	Pick func(fields []Field) int
}

// Server is the part of a Redis server that concerns one lock.
type Server struct {
	setup         *Setup
	now           machine.Instant
	parts         [MaxParts]Lock
	subscriptions []subscription
}

// subscription is a client's subscription to a channel.
type subscription struct {
	client  Client
	channel Owner
}

// Publication is a message about a lock. Its channel is the lock's own if To is zero; otherwise the channel of a waiter
// in a fair lock's queue, or of a client that gets a transfer.
type Publication struct {
	Part int
	To   Owner
	// All wakes all waiters, and not only one, as the payloads of Redisson distinguish.
	All bool
	// Transfer is the content of a message on a turn channel.
	Transfer machine.Transfer
}

// New returns an empty server.
func New(setup *Setup) Server { return Server{setup: setup} }

// Parts returns the locks of the server.
func (s *Server) Parts() []Lock { return s.parts[:len(s.setup.Kinds)] }

// Part returns the i-th lock of the server.
func (s *Server) Part(i int) *Lock { return &s.parts[i] }

// At advances the clock to now, and expires keys.
func (s *Server) At(now machine.Instant) {
	s.now = max(s.now, now)
	for i := range s.Parts() {
		s.parts[i].expire(s.now)
	}
}

// NextEnd returns when the next key or entry expires, apart from a fair lock's queue: its waiters are dead long
// before.
func (s *Server) NextEnd() (at machine.Instant, ok bool) {
	var ends []machine.Instant
	for _, l := range s.Parts() {
		if !l.Free() {
			ends = append(ends, l.ExpiresAt)
		}
		for _, p := range l.Entries {
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

// Clock returns the time by the server's clock.
func (s *Server) Clock() time.Duration { return s.fast(s.now).Truncate(time.Millisecond) }

func (s *Server) fast(d time.Duration) time.Duration {
	return time.Duration(float64(d) * cmp.Or(s.setup.Rate, 1))
}

// end returns when a TTL that is set now expires. It is sent in whole milliseconds, and counts from the
// current millisecond of the server.
func (s *Server) end(lease time.Duration) machine.Instant {
	lease = (lease + time.Millisecond - 1).Truncate(time.Millisecond)
	return time.Duration(float64(s.Clock()+lease) / cmp.Or(s.setup.Rate, 1))
}

// left returns the rest of a TTL. Setting it again does not move the end.
func (s *Server) left(end machine.Instant) time.Duration {
	return s.fast(end).Round(time.Millisecond) - s.Clock()
}

// Subscribe subscribes a client to a channel: the zero Owner is the lock's own channel, another Owner the channel of a
// waiter in a fair lock's queue.
func (s *Server) Subscribe(c Client, channel Owner) {
	if one := (subscription{c, channel}); !slices.Contains(s.subscriptions, one) {
		s.subscriptions = append(slices.Clip(s.subscriptions), one)
	}
}

// Unsubscribe ends a subscription.
func (s *Server) Unsubscribe(c Client, channel Owner) {
	ends := func(e subscription) bool { return e == subscription{c, channel} }
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), ends)
}

// Hangup ends all subscriptions of a client.
func (s *Server) Hangup(c Client) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(e subscription) bool { return e.client == c })
}

// Subscribers returns the number of subscribers of a channel, as PUBSUB NUMSUB does.
func (s *Server) Subscribers(channel Owner) int { return len(s.Hearers(Publication{To: channel})) }

// Subscriptions returns the number of subscriptions to channels of locks.
func (s *Server) Subscriptions() (n int) {
	for _, e := range s.subscriptions {
		if e.channel.Term < asked {
			n++
		}
	}
	return n
}

// Hearers returns the clients that receive a publication, in the order of their subscriptions.
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

// Flush deletes all keys.
func (s *Server) Flush() { s.parts = [MaxParts]Lock{} }

// Restart replaces the server by an empty one. Clients must subscribe again.
func (s *Server) Restart() {
	s.Flush()
	s.subscriptions = nil
}

// run is one run of a command of a client.
type run struct {
	*Server
	client Client
	lock.Command
	owner     Owner
	published []Publication
	// vacated are the first places in the wait queues that writers have left since the command began.
	vacated map[*Lock]int
}

// Run runs a command of a client as the scripts do, and returns the reply and the publications. If part is not
// negative, it runs on that part of a MultiLock only.
func (s *Server) Run(client Client, part int, c lock.Command) (answer lock.Result, published []Publication) {
	r := run{Server: s, client: client, Command: c, owner: Owner{Client: client, Term: c.Term}, vacated: map[*Lock]int{}}
	switch {
	case part >= 0:
		answer = r.part(part)
	case len(s.setup.Kinds) > 1:
		answer = r.several()
	default:
		answer = r.one(0)
	}
	return answer, r.published
}

// one runs the command on one part.
func (r *run) one(part int) lock.Result {
	switch r.setup.Kinds[part] {
	case Fair:
		return r.fair(part)
	case ReadWrite, ReadPart, WritePart:
		return r.readWrite(part)
	default:
		return r.withTokens(part)
	}
}

func (r *run) publish(p Publication) { r.published = append(r.published, p) }

func result(o lock.Outcome) lock.Result { return lock.Result{Outcome: o} }
