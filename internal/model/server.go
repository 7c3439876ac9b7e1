package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
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
	// Silence and Announcement are those of wire.Options.
	Silence, Announcement time.Duration
	// Rate is how fast the server's clock runs compared with that of the processes; 0 is 1.
	Rate float64
	// Name spells a field as replies do.
	Name func(Owner) string
	// Pick chooses one of several fields where Redis does so at random; nil is the first.
	Pick func(fields []Field) int
}

// Server is a Redis as far as one lock can see it.
type Server struct {
	setup *Setup
	now   core.Instant
	parts [MostParts]Lock
	ears  []ear
}

// ear is a client that listens to a channel.
type ear struct {
	client  Client
	channel Owner
}

// Publication is a message about a lock. Its channel is the lock's own or, if To is
// somebody, that of a waiter in a fair lock's queue.
type Publication struct {
	Part int
	To   Owner
	// All wakes all who wait, and not only one: how Redisson spells it.
	All bool
}

// New is an empty server.
func New(setup *Setup) Server { return Server{setup: setup} }

// Clone is a copy; what happens to one leaves no trace in the other.
func (s *Server) Clone() Server { return *s }

// Parts are the locks that the server keeps.
func (s *Server) Parts() []Lock { return s.parts[:len(s.setup.Kinds)] }

// Part is one of them.
func (s *Server) Part(i int) *Lock { return &s.parts[i] }

// At lets the time come, and with it the end of what has a TTL.
func (s *Server) At(now core.Instant) {
	s.now = max(s.now, now)
	for i := range s.Parts() {
		s.parts[i].expire(s.now)
	}
}

// NextEnd is when a TTL runs out next.
func (s *Server) NextEnd() (at core.Instant, ok bool) {
	end := func(t core.Instant) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for i := range s.Parts() {
		s.parts[i].ends(end)
	}
	return at, ok
}

// Clock is the server's time of day.
func (s *Server) Clock() time.Duration { return s.fast(s.now).Truncate(time.Millisecond) }

func (s *Server) fast(d time.Duration) time.Duration {
	if s.setup.Rate == 0 || s.setup.Rate == 1 {
		return d
	}
	return time.Duration(float64(d) * s.setup.Rate)
}

// end is when a TTL that is set now runs out. It is sent in whole milliseconds, and the
// server counts it from the millisecond that it is in.
func (s *Server) end(lease time.Duration) core.Instant {
	lease = (lease + time.Millisecond - 1).Truncate(time.Millisecond)
	end := s.Clock() + lease
	if s.setup.Rate == 0 || s.setup.Rate == 1 {
		return end
	}
	return time.Duration(float64(end) / s.setup.Rate)
}

// left is the rest of a TTL. To set it again moves the end by nothing.
func (s *Server) left(end core.Instant) time.Duration {
	return s.fast(end).Round(time.Millisecond) - s.Clock()
}

// Subscribe gets a client the messages of the lock's channels or, if the channel is
// somebody's, of that waiter's in a fair lock's queue.
func (s *Server) Subscribe(c Client, channel Owner) {
	if one := (ear{c, channel}); !slices.Contains(s.ears, one) {
		s.ears = append(slices.Clip(s.ears), one)
	}
}

// Unsubscribe ends that.
func (s *Server) Unsubscribe(c Client, channel Owner) {
	s.deafen(func(e ear) bool { return e == ear{c, channel} })
}

// Hangup ends all subscriptions of a client.
func (s *Server) Hangup(c Client) { s.deafen(func(e ear) bool { return e.client == c }) }

func (s *Server) deafen(ends func(ear) bool) {
	if slices.ContainsFunc(s.ears, ends) {
		s.ears = slices.DeleteFunc(slices.Clone(s.ears), ends)
	}
}

// Subscribers is how many listen to a channel: how PUBSUB NUMSUB counts them.
func (s *Server) Subscribers(channel Owner) (n int) {
	for _, e := range s.ears {
		if e.channel == channel {
			n++
		}
	}
	return n
}

// Ears is how many subscriptions there are in all.
func (s *Server) Ears() int { return len(s.ears) }

// Hears reports whether a client is sent what is published there.
func (s *Server) Hears(c Client, p Publication) bool { return slices.Contains(s.ears, ear{c, p.To}) }

// Hearers lists who is sent a publication, in the order in which they have subscribed.
func (s *Server) Hearers(p Publication) []Client {
	var all []Client
	for _, e := range s.ears {
		if e.channel == p.To {
			all = append(all, e.client)
		}
	}
	return all
}

// Delete deletes the hash of a part.
func (s *Server) Delete(part int) { s.parts[part].holders = nil }

// Restart is the end of the server, and another one in its place that remembers nothing.
// Whoever wants to hear must subscribe again.
func (s *Server) Restart() {
	s.parts, s.ears = [MostParts]Lock{}, nil
}

// Flush forgets all keys.
func (s *Server) Flush() { s.parts = [MostParts]Lock{} }
