package actors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// MaxMembers bounds the locks of a MultiLock.
const MaxMembers = 64

// Member is a lock that is part of a MultiLock.
type Member struct {
	Runtime *Runtime
	Kind    messages.Kind
	Mode    messages.Mode
	Name    string
}

// Members are the locks of a MultiLock.
type Members struct {
	// id is the same for the same members in another order.
	id string
	// sorted is the order in which they are taken.
	sorted []Member
	// token says, for each in the order that was given, which of the tokens is its own; -1: none.
	token []int
	// fenced is how many of them have tokens.
	fenced int
}

// ID is the same for the same members in another order.
func (m *Members) ID() string { return m.id }

// String names the members.
func (m *Members) String() string {
	var names []string
	for _, one := range m.sorted {
		names = append(names, one.Name)
	}
	return strings.Join(names, " + ")
}

// NewMembers checks the members of a MultiLock, and puts them into their fixed order.
func NewMembers(given []Member) (*Members, error) {
	if len(given) == 0 || len(given) > MaxMembers {
		return nil, fmt.Errorf("a MultiLock of %d locks: it has 1 to %d", len(given), MaxMembers)
	}
	m := &Members{sorted: slices.Clone(given)}
	slices.SortStableFunc(m.sorted, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Runtime.id, b.Runtime.id))
	})
	var id strings.Builder
	for i, one := range m.sorted {
		switch {
		case one.Kind == messages.Kind_KIND_MULTI:
			return nil, errors.New("a MultiLock cannot be a member of a MultiLock: name its members instead")
		case i > 0 && one.Name == m.sorted[i-1].Name && one.Runtime == m.sorted[i-1].Runtime:
			return nil, fmt.Errorf("the lock %q is named twice", one.Name)
		}
		if err := one.Runtime.checkLock(one.Kind, one.Mode, one.Name); err != nil {
			return nil, err
		}
		fmt.Fprintf(&id, "%s %d %d %q;", one.Runtime.id, one.Kind, one.Mode, one.Name)
	}
	m.id = id.String()
	var fenced []Member
	for _, group := range m.groups() {
		for _, one := range group {
			if one.Kind == messages.Kind_KIND_FENCED {
				fenced = append(fenced, one)
			}
		}
	}
	m.fenced = len(fenced)
	for _, one := range given {
		m.token = append(m.token, slices.Index(fenced, one))
	}
	return m, nil
}

// Home is the system whose lock actor keeps the MultiLock.
func (m *Members) Home() *Runtime { return m.sorted[0].Runtime }

// Tokens are the members' fencing tokens in the order that was given; 0 where there is none.
func (m *Members) Tokens(drawn []int64) []int64 {
	all := make([]int64, len(m.token))
	for i, at := range m.token {
		if at >= 0 && at < len(drawn) {
			all[i] = drawn[at]
		}
	}
	return all
}

// groups are the members that one script can take, in the order in which they are taken.
func (m *Members) groups() [][]Member {
	type place struct {
		rt   *Runtime
		slot uint16
	}
	var groups [][]Member
	at := map[place]int{}
	for _, one := range m.sorted {
		p := place{rt: one.Runtime}
		switch {
		case one.Kind == messages.Kind_KIND_RED:
			groups = append(groups, []Member{one})
			continue
		case one.Runtime.redis.Cluster():
			p.slot = redisio.Slot(one.Runtime.cfg.KeyPrefix + one.Name)
		}
		i, known := at[p]
		if !known {
			i = len(groups)
			at[p] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], one)
	}
	return groups
}

// target is what the members are in Redis, for a lock actor of that client id.
func (m *Members) target(options *wire.Options) target {
	whole := &together{}
	for _, group := range m.groups() {
		var leaves []*leaf
		for _, one := range group {
			if one.Kind == messages.Kind_KIND_RED {
				whole.parts = append(whole.parts, one.Runtime.quorum(one.Name, options))
				continue
			}
			leaves = append(leaves, one.Runtime.leaf(one, options))
		}
		switch len(leaves) {
		case 0:
		case 1:
			whole.parts = append(whole.parts, leaves[0])
		default:
			whole.parts = append(whole.parts, newBundle(leaves))
		}
	}
	if len(whole.parts) == 1 {
		return whole.parts[0]
	}
	return whole
}

func (r *Runtime) leaf(of Member, options *wire.Options) *leaf {
	return &leaf{rt: r, member: wire.Member{
		Lock: wire.New(wire.Kind(formatOf(of.Kind)), r.cfg.KeyPrefix+of.Name, options),
		Mode: core.Mode(of.Mode), Fenced: of.Kind == messages.Kind_KIND_FENCED,
	}}
}

// quorum is a RedLock's lock, for a lock actor of that client id.
func (r *Runtime) quorum(name string, options *wire.Options) target {
	q := &quorum{quarantine: r.cfg.Lease}
	for _, each := range *r.red.Load() {
		q.leaves = append(q.leaves, each.leaf(Member{Name: name}, options))
	}
	return q
}

// Red makes the systems the servers of a RedLock, which the first of them keeps.
func Red(systems []*Runtime) error {
	if len(systems) < 3 {
		return fmt.Errorf("a RedLock of %d systems: it takes at least 3, better 5, each on a Redis of its own", len(systems))
	}
	home := systems[0]
	for i, each := range systems {
		if slices.Index(systems, each) != i {
			return errors.New("a RedLock in which a system is named twice")
		}
		if each.redis.Cluster() {
			return errors.New("a RedLock with a system on a Redis Cluster: each takes a single server of its own")
		}
		if each.cfg.Lease != home.cfg.Lease {
			return fmt.Errorf("a RedLock of systems whose Watchdog differs: %v and %v", home.cfg.Lease, each.cfg.Lease)
		}
	}
	chosen := slices.Clone(systems)
	if known := home.red.Load(); known == nil || !slices.Equal(*known, chosen) {
		meet(chosen)
	}
	if err := distinct(chosen); err != nil {
		return err
	}
	if !home.red.CompareAndSwap(nil, &chosen) && !slices.Equal(*home.red.Load(), chosen) {
		return errors.New("the first of these systems keeps a RedLock of other systems already")
	}
	return nil
}
