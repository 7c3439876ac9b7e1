package backend

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// A MultiLock cannot have one key twice, since the first release of the key would leave nothing for the second. It is
// not known whether two servers are the same Redis, so the acquisition of the second key checks whether the first key
// is there.

// sameNamed are the members of a part whose key names also occur in earlier parts, on other servers.
type sameNamed struct {
	members []*member
	// surelyTaken: the earlier parts have surely taken those keys. A RedLock takes them only on a majority of servers.
	surelyTaken bool
	// knownDifferent: the keys are surely not the same.
	knownDifferent atomic.Bool
}

// sameNamedIn returns the sameNamed of each part; nil if no part has any.
func sameNamedIn(parts []lockPart) []sameNamed {
	all, taken, found := make([]sameNamed, len(parts)), map[string]bool{}, false
	for i, part := range parts {
		members, isMajority := membersOf(part)
		all[i].surelyTaken = true
		for _, m := range members {
			if surely, known := taken[m.lock.Key()]; known {
				all[i].members, all[i].surelyTaken = append(all[i].members, m), all[i].surelyTaken && surely
			}
		}
		for _, m := range members {
			taken[m.lock.Key()] = !isMajority
		}
		found = found || len(all[i].members) > 0
	}
	if !found {
		return nil
	}
	return all
}

func membersOf(p lockPart) (members []*member, isMajority bool) {
	switch p := p.(type) {
	case *member:
		return []*member{p}, false
	case *batch:
		return p.members, false
	case *majority:
		return p.members, true
	}
	return nil, false
}

// check calls done with an error if the term already holds one of the keys, which only an earlier part can have taken.
func (s *sameNamed) check(term uint64, deadline time.Time, done func(error)) {
	if len(s.members) == 0 || s.knownDifferent.Load() {
		done(nil)
		return
	}
	type answer struct {
		known bool
		same  error
	}
	answers := &collect[answer]{n: len(s.members), judge: whenAll(func(answers []answer) {
		different := s.surelyTaken
		for _, a := range answers {
			if a.same != nil {
				done(a.same)
				return
			}
			different = different && a.known
		}
		s.knownDifferent.Store(different)
		done(nil)
	})}
	for _, m := range s.members {
		m.inspect(deadline, func(v protocol.View, err error) {
			a := answer{known: err == nil} // else the acquisition says what is wrong
			if slices.Contains(v.Owners, m.owner(term)) {
				a.same = fmt.Errorf("the key %q is that of two of the locks: their systems use the same Redis", m.lock.Key())
			}
			answers.add(a)
		})
	}
}
