package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// A forced release names the owners that it is meant for, and the script compares. So a command that arrives
// late, when another owner has the lock, frees nothing.

// name passes on a forced release with the owners that it is meant for. If its caller has not named any, these
// are the owners that hold the lock now, and the one of its term. If Redis cannot be asked, failed gets the
// reply; one that has not come in time is not waited for again.
func (s *single) name(c lock.Command, deadline time.Time, named func(lock.Command), failed func(Reply)) {
	if c.Owners != nil {
		named(c)
		return
	}
	s.Inspect(deadline, func(v protocol.View, err error) {
		if err != nil {
			r := unseen(err)
			if sorted := (*redisio.Error)(nil); errors.As(err, &sorted) {
				r.Unsure = sorted.Unsure
			}
			failed(r)
			return
		}
		c.Owners = v.Owners
		if own := s.owner(c.Term); c.Term != 0 && !slices.Contains(c.Owners, own) {
			c.Owners = append(slices.Clip(c.Owners), own)
		}
		named(c)
	})
}

// owner is the owner of that term in Redis.
func (s *single) owner(term uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock.Owner(term)
}
