package protocol

import (
	"maps"
	"sync"
	"time"
)

// Kept has the terms of a System that have ended, and whose keys are left to expire: see lock.Command.Keeps. It outlives
// the lock actors. A nil Kept has none.
type Kept struct {
	mu    sync.Mutex // guards what follows
	until map[uint64]time.Time
	// most is how many terms there may be before those that are over are removed.
	most int
}

const fewKept = 64

func (k *Kept) add(term uint64, until time.Time) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.until) >= k.most {
		now := time.Now()
		maps.DeleteFunc(k.until, func(_ uint64, until time.Time) bool { return until.Before(now) })
		k.most = 2*len(k.until) + fewKept
	}
	if k.until == nil {
		k.until = map[uint64]time.Time{}
	}
	k.until[term] = until
}

func (k *Kept) has(term uint64) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Before(k.until[term])
}
