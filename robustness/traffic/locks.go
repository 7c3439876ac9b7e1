package traffic

import (
	"math/rand/v2"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// choice is a lock that a worker has chosen, with its parts for the judge.
type choice struct {
	lock  *lockkeeper.Lock
	parts []history.Part
	// permits are acquired instead of a lock; nil for a lock.
	permits *lockkeeper.ExpirableSemaphore
	// reenter is the lock for re-entries; nil for none.
	reenter *lockkeeper.Lock
	// inner are the parts of reenter.
	inner []history.Part
	// downgrades: a holder of both locks may release the outer lock first.
	downgrades bool
	// counts says that Inspect returns the hold count of the only holder.
	counts bool
}

// choose returns the lock that a worker of a kind acquires next.
func choose(s *lockkeeper.System, kind Kind, random *rand.Rand) choice {
	one := func(name, model string, shared bool) []history.Part {
		return []history.Part{{Lock: name, Kind: model, Shared: shared}}
	}
	switch kind {
	case Reentrant:
		l := s.Lock("reentrant")
		parts := one("reentrant", "reentrant", false)
		return choice{lock: l, parts: parts, reenter: l, inner: parts, counts: true}
	case Fenced:
		l := s.FencedLock("fenced")
		parts := one("fenced", "fenced", false)
		return choice{lock: l, parts: parts, reenter: l, inner: parts, counts: true}
	case Fair:
		return choice{lock: s.FairLock("fair"), parts: one("fair", "fair", false), counts: true}
	case ReadWrite:
		l, reading := s.ReadWriteLock("readwrite"), one("readwrite", "readwrite", true)
		if random.IntN(3) > 0 {
			return choice{lock: l.Read(), parts: reading, reenter: l.Read(), inner: reading}
		}
		return choice{lock: l.Write(), parts: one("readwrite", "readwrite", false), reenter: l.Read(), inner: reading, downgrades: true}
	case Read:
		return reading(s)
	case Multi:
		return several(s, random)
	}
	return choice{lock: s.Lock(string(kind)), parts: one(string(kind), "plain", false), counts: true}
}

// several returns a MultiLock, or one of its members.
func several(s *lockkeeper.System, random *rand.Rand) choice {
	shared := random.IntN(2) == 0
	third := s.ReadWriteLock("multi-c").Write()
	if shared {
		third = s.ReadWriteLock("multi-c").Read()
	}
	locks := []*lockkeeper.Lock{s.Lock("multi-a"), s.FencedLock("multi-b"), third}
	parts := []history.Part{
		{Lock: "multi-a", Kind: "plain"}, {Lock: "multi-b", Kind: "fenced"}, {Lock: "multi-c", Kind: "readwrite", Shared: shared},
	}
	if i := random.IntN(2 * len(locks)); i < len(locks) {
		return choice{lock: locks[i], parts: parts[i : i+1]}
	}
	return choice{lock: lockkeeper.MultiLock(locks...), parts: parts}
}
