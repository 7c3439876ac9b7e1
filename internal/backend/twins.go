package backend

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// A MultiLock cannot have one key twice: the first release of the key would leave nothing for the second. Whether two
// servers are the same Redis is not known, so the acquisition of the second key looks whether the first is there.

// twins are the members of a part whose keys are called like those of earlier parts, on other servers.
type twins struct {
	members []*member
	// certain: the earlier parts have taken those keys for certain. A RedLock takes them on a majority.
	certain bool
	// apart: they are not the same keys.
	apart atomic.Bool
}

// twinsIn returns the twins in each of the parts; nil if there are none.
func twinsIn(parts []part) []twins {
	all, certain, found := make([]twins, len(parts)), map[string]bool{}, false
	for i, part := range parts {
		members, isMajority := membersOf(part)
		all[i].certain = true
		for _, m := range members {
			if sure, known := certain[m.lock.Key]; known {
				all[i].members, all[i].certain = append(all[i].members, m), all[i].certain && sure
			}
		}
		for _, m := range members {
			certain[m.lock.Key] = !isMajority
		}
		found = found || len(all[i].members) > 0
	}
	if !found {
		return nil
	}
	return all
}

func membersOf(p part) (members []*member, isMajority bool) {
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

// check calls done with an error if the term holds one of the keys already, which only an earlier part can have taken.
func (t *twins) check(term uint64, deadline time.Time, done func(error)) {
	if len(t.members) == 0 || t.apart.Load() {
		done(nil)
		return
	}
	type answer struct {
		known bool
		same  error
	}
	answers := &collect[answer]{n: len(t.members), judge: whenAll(func(answers []answer) {
		apart := t.certain
		for _, a := range answers {
			if a.same != nil {
				done(a.same)
				return
			}
			apart = apart && a.known
		}
		t.apart.Store(apart)
		done(nil)
	})}
	for _, m := range t.members {
		m.inspect(deadline, func(v protocol.View, err error) {
			a := answer{known: err == nil} // else the acquisition says what is wrong
			if slices.Contains(v.Owners, m.owner(term)) {
				a.same = fmt.Errorf("the key %q is that of two of the locks: their systems use the same Redis", m.lock.Key)
			}
			answers.add(a)
		})
	}
}
