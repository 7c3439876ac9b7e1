package request

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// MaxMembers is the largest number of members of a MultiLock.
const MaxMembers = 64

// Member is a lock that is part of a MultiLock.
type Member struct {
	System Home
	Kind   messages.Kind
	Mode   messages.Mode
	Name   string
}

// systems returns the systems in whose Redis the member has a key.
func (m Member) systems() []Home {
	if TraitsOf(m.Kind).Composition == SeveralServers {
		return m.System.Rules().RedLock()
	}
	return []Home{m.System}
}

// Members are the members of a MultiLock.
type Members struct {
	// id is the same for the same members in another order.
	id string
	// Sorted lists the members in the order in which they are taken.
	Sorted []Member
	// token has, for each member in the order that was given, the index of its token; -1 for none.
	token []int
	// Fenced is the number of members that have tokens.
	Fenced int
}

// ID returns an identifier of the members that does not depend on their order.
func (m *Members) ID() string { return m.id }

// String returns the names of the members.
func (m *Members) String() string {
	var names []string
	for _, one := range m.Sorted {
		names = append(names, one.Name)
	}
	return strings.Join(names, " + ")
}

// NewMembers checks the members of a MultiLock and sorts them into their fixed order.
func NewMembers(given []Member) (*Members, error) {
	if len(given) == 0 || len(given) > MaxMembers {
		return nil, fmt.Errorf("a MultiLock of %d locks: it has 1 to %d", len(given), MaxMembers)
	}
	m := &Members{Sorted: slices.Clone(given)}
	slices.SortStableFunc(m.Sorted, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.System.Rules().ID, b.System.Rules().ID))
	})
	var id strings.Builder
	for i, one := range m.Sorted {
		switch {
		case !TraitsOf(one.Kind).IsLock():
			return nil, fmt.Errorf("%v cannot be a member of a MultiLock, whose members are locks", one.Kind)
		case TraitsOf(one.Kind).Composition == SeveralLocks:
			return nil, errors.New("a MultiLock cannot be a member of a MultiLock: name its members instead")
		case TraitsOf(one.Kind).Form != nil && TraitsOf(one.Kind).Form.Member.Word == "":
			return nil, fmt.Errorf("%s cannot be a member of a MultiLock: it is taken alone", TraitsOf(one.Kind).Word)
		}
		if err := one.System.Rules().checkLock(one.Kind, one.Mode, one.Name); err != nil {
			return nil, err
		}
		for _, system := range one.systems() {
			if slices.ContainsFunc(m.Sorted[:i], func(other Member) bool {
				return other.Name == one.Name && slices.Contains(other.systems(), system)
			}) {
				return nil, fmt.Errorf("the lock %q is named twice", one.Name)
			}
		}
		fmt.Fprintf(&id, "%s %d %d %q;", one.System.Rules().ID, one.Kind, one.Mode, one.Name)
	}
	m.id = id.String()
	var fenced []Member
	for _, i := range m.Home().DrawOrder(m.Sorted) {
		if one := m.Sorted[i]; TraitsOf(one.Kind).Fenced {
			fenced = append(fenced, one)
		}
	}
	m.Fenced = len(fenced)
	for _, one := range given {
		m.token = append(m.token, slices.Index(fenced, one))
	}
	return m, nil
}

// Home returns the system that runs the lock actor of the MultiLock.
func (m *Members) Home() Home { return m.Sorted[0].System }

// Tokens returns the members' fencing tokens in the order given to NewMembers; 0 for a member
// without tokens.
func (m *Members) Tokens(drawn []int64) []int64 {
	all := make([]int64, len(m.token))
	for i, at := range m.token {
		if at >= 0 && at < len(drawn) {
			all[i] = drawn[at]
		}
	}
	return all
}
