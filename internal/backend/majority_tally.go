package backend

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
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

// minBlocking returns the smallest number of servers that prevent every majority.
func (m *majority) minBlocking() int { return len(m.members) - m.quorum() + 1 }

// isRefused reports whether a majority is impossible, and the missing votes cannot change what refusal says to wait
// for.
func (m *majority) isRefused(t tally) bool {
	against := len(t.refused) + len(t.absent) + len(t.failed)
	if against < m.minBlocking() {
		return false
	}
	_, blocking := largestHolder(t.refused)
	blocking += len(t.failed)
	return blocking >= m.minBlocking() || blocking+len(m.members)-len(t.done)-against < m.minBlocking()
}

// largestHolder returns a refusal because of the owner that holds the most servers, and their number.
func largestHolder(refused []vote) (of vote, held int) {
	byHolder := map[string]int{}
	for _, v := range refused {
		if byHolder[v.Holder]++; byHolder[v.Holder] > held {
			of, held = v, byHolder[v.Holder]
		}
	}
	return of, held
}

// refusal returns why there was no majority. before are the refusals of the previous try.
//
// Every majority that becomes free later must include one of the busy servers, or waiters would not be woken. As few
// servers as possible are busy: minorities of other waiters come and go, and waiting for them would cause endless
// retries. If the servers of one owner, and the servers that failed, prevent every majority, the other servers do not
// matter. Nor do they matter if every majority is prevented by owners that have also refused the last try, such as the
// holders of plain locks, since each try of a waiter has another owner.
func (m *majority) refusal(t tally, before []vote) Reply {
	if len(t.refused) == 0 || len(t.failed) >= m.minBlocking() {
		return m.failure(t)
	}
	refused, again := t.refused, len(t.done) > 0
	if lasting := repeated(t.refused, before); len(lasting)+len(t.failed) >= m.minBlocking() {
		refused, again = lasting, false
	}
	r := Reply{Result: lock.Result{Outcome: lock.Refused}}
	by, held := largestHolder(refused)
	r.Holder, r.OwnTerm = by.Holder, by.OwnTerm
	again = again && held < m.quorum()-len(t.failed)
	onlyHolder := again || held+len(t.failed) >= m.minBlocking()
	for _, v := range refused {
		if v.Holder == r.Holder || !onlyHolder {
			r.Busy = append(r.Busy, v.on.channels()...)
		}
	}
	for _, v := range t.failed {
		r.Busy = append(r.Busy, v.on.channels()...)
	}
	if again {
		r.TTL = rand.N(maxSplitPause) // this owner has a minority, and no owner has a majority
		return r
	}
	// The TTL ends when so many of these holds have expired that the other servers may be a majority.
	ends := slices.SortedFunc(slices.Values(refused), func(a, b vote) int { return cmp.Compare(uint64(a.TTL), uint64(b.TTL)) })
	r.TTL = ends[max(len(ends)-m.minBlocking(), 0)].TTL
	return r
}

// repeated returns the refusals that were also in before, of the same owner on the same server.
func repeated(refused, before []vote) (lasting []vote) {
	for _, v := range refused {
		if slices.ContainsFunc(before, func(b vote) bool { return b.on == v.on && b.Holder == v.Holder }) {
			lasting = append(lasting, v)
		}
	}
	return lasting
}

// errNoVote is the error if there is no majority although every server has answered.
var errNoVote = errors.New("a majority of the servers does not have the lock")

// failure returns a failure with the number of servers that failed, and the error of one server.
func (m *majority) failure(t tally) Reply {
	if len(t.failed) == 0 {
		return Reply{Result: lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Err: errNoVote}}}
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
