package backend

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// tally sorts the votes of the servers.
type tally struct{ done, refused, absent, failed []vote }

type vote struct {
	Reply
	on *member
}

func count(votes []vote) (t tally) {
	for _, v := range votes {
		switch v.Outcome {
		case lock.Done:
			t.done = append(t.done, v)
		case lock.Refused:
			t.refused = append(t.refused, v)
		case lock.Absent:
			t.absent = append(t.absent, v)
		default:
			t.failed = append(t.failed, v)
		}
	}
	return t
}

// refusal returns why there was no majority.
func (m *majority) refusal(t tally) Reply {
	if len(t.refused) == 0 || len(t.failed) > len(m.members)-m.quorum() {
		return m.failure(t)
	}
	r := Reply{Result: lock.Result{Outcome: lock.Refused}}
	holders := map[string]int{}
	for _, v := range t.refused {
		if holders[v.Holder]++; holders[v.Holder] > holders[r.Holder] || r.Holder == "" {
			r.Holder, r.OwnTerm = v.Holder, v.OwnTerm
		}
	}
	for _, v := range t.refused {
		if v.Holder == r.Holder { // other owners fail like this one: waiting for them would cause the next collision
			r.Busy = append(r.Busy, v.Busy...)
		}
	}
	if len(t.done) > 0 && holders[r.Holder] < m.quorum()-len(t.failed) {
		r.TTL = rand.N(split) // this owner has a minority, and no owner has a majority
		return r
	}
	// The TTL ends when so many of these holds have expired that a majority is free.
	slices.SortFunc(t.refused, func(a, b vote) int { return cmp.Compare(uint64(a.TTL), uint64(b.TTL)) })
	lacking := max(m.quorum()-len(t.done), 1)
	r.TTL = t.refused[min(lacking, len(t.refused))-1].TTL
	return r
}

// errNoVote is the error if there is no majority although every server has answered.
var errNoVote = errors.New("a majority of the servers does not have the lock")

// failure returns a failure with the number of servers that failed, and the error of one of them.
func (m *majority) failure(t tally) Reply {
	if len(t.failed) == 0 {
		return Reply{Result: lock.Result{Outcome: lock.Failed, Transient: true, Err: errNoVote}}
	}
	r := Reply{Result: lock.Result{Outcome: lock.Failed}}
	for _, v := range t.failed {
		r.Transient, r.Unsure = r.Transient || v.Transient, r.Unsure || v.Unsure
		r.Err = fmt.Errorf("%d of %d servers failed, and %d are needed: %w", len(t.failed), len(m.members), m.quorum(), v.Err)
	}
	return r
}

// halfDone returns the failure of a command that a minority may have carried out.
func (m *majority) halfDone(t tally) Reply {
	r := m.failure(t)
	r.Unsure = r.Unsure || len(t.done) > 0
	return r
}
