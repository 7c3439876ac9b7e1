package backend

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// MemberSpec says which lock a member of a MultiLock is, and how it is taken.
type MemberSpec struct {
	Server *Server
	Form   *forms.Form
	Name   string
	Mode   machine.Mode
	// Fenced: the member draws a fencing token.
	Fenced bool
	// Majority are the servers of the member if it is a RedLock; Server is then the first of them.
	Majority []*Server
}

// NewMultiLock returns the Backend of a MultiLock, whose members are taken in the order of Batches.
func NewMultiLock(specs []MemberSpec, options *protocol.Options, to Receiver) Backend {
	return &composite{newMultiLock(specs, options), to}
}

func newMultiLock(specs []MemberSpec, options *protocol.Options) lockPart {
	multi := &multiLock{}
	for _, indices := range Batches(specs) {
		if first := specs[indices[0]]; first.Majority != nil {
			multi.parts = append(multi.parts, newMajority(first.Majority, first.Name, options))
			continue
		}
		var members []*member
		for _, i := range indices {
			members = append(members, newMember(specs[i], options))
		}
		if len(members) == 1 {
			multi.parts = append(multi.parts, members[0])
		} else {
			multi.parts = append(multi.parts, newBatch(members))
		}
	}
	if one, isMember := multi.parts[0].(*member); len(multi.parts) == 1 && !(isMember && one.wire.Form.Queue != nil) {
		return multi.parts[0]
	}
	// A fair lock stays in a multiLock even if it is the only part: a fair lock has no Yield, and multiLock carries it
	// out as a release.
	multi.sameNamed = sameNamedIn(multi.parts)
	return multi
}

// NewRedLock returns the Backend of a RedLock, a lock on a majority of servers.
func NewRedLock(servers []*Server, name string, options *protocol.Options, to Receiver) Backend {
	return &composite{newMajority(servers, name, options), to}
}

// composite makes a lockPart a Backend: a MultiLock or a RedLock.
type composite struct {
	lockPart
	to Receiver
}

func (l *composite) Run(c lock.Command, deadline time.Time) {
	l.run(c, deadline, func(r Reply) {
		r.Alone = false // also for a single part: other processes cannot ask its owner for the lock
		l.to.Replied(c.Seq, r)
	})
}

func (l *composite) Inspect(deadline time.Time, done func(protocol.View, error)) {
	l.inspect(deadline, done)
}

func (l *composite) Channels(uint64) []Channel { return l.channels() }

func (l *composite) CleanUp(c lock.Command, done func(certain bool)) { l.cleanUp(c, done) }

// Batches groups the indices of the members by script, in the order in which they are taken. Their fencing tokens are
// in the same order.
//
// Two locks have the same order in every MultiLock that has both as members. Otherwise two MultiLocks that share them
// would often each keep one lock reserved and wait for the other lock, until one MultiLock leaves its entry; see
// queueEntries.leave. So the locks are in the order of the members, by name, and in a cluster by slot; a script takes
// neighbours on one server or in one slot. RedLocks come last: which of their servers have been taken is not certain;
// see sameNamed.
func Batches(specs []MemberSpec) (batches [][]int) {
	type location struct {
		server *Server
		slot   uint16
	}
	locations := make([]location, len(specs))
	order := make([]int, len(specs))
	for i, spec := range specs {
		order[i], locations[i] = i, location{server: spec.Server}
		if spec.Server.redis.Cluster() {
			locations[i].slot = keyspace.Slot(spec.Server.prefix + spec.Name)
		}
	}
	group := func(spec *MemberSpec) int {
		switch {
		case spec.Majority != nil:
			return 2
		case spec.Server.redis.Cluster():
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(group(&specs[i])-group(&specs[j]), int(locations[i].slot)-int(locations[j].slot))
	})
	for n, i := range order {
		if n > 0 {
			last := order[n-1]
			if specs[i].Majority == nil && specs[last].Majority == nil && locations[i] == locations[last] {
				batches[len(batches)-1] = append(batches[len(batches)-1], i)
				continue
			}
		}
		batches = append(batches, []int{i})
	}
	return batches
}

// Releases returns the channels on which locks publish a release that is not meant for one waiter.
func Releases(specs []MemberSpec) []Channel {
	return newMultiLock(specs, &protocol.Options{}).channels()
}
