package backend

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// A forced release names the owners to release, and the script compares. So a command that arrives late, when
// another owner holds the lock, frees nothing.

// name calls named with a forced release that names its owners. If the caller has not named owners, they are the owners
// that hold the lock now, and the owner of the command's term. If the inspection fails, failed gets the reply.
func (s *serverLock) name(c lock.Command, deadline time.Time, named func(lock.Command), failed func(Reply)) {
	if c.Owners != nil {
		named(c)
		return
	}
	s.Inspect(deadline, func(v protocol.View, err error) {
		if err != nil {
			r := uninspected(err)
			if classified := (*redisio.Error)(nil); errors.As(err, &classified) {
				r.Unsure = classified.Unsure
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

// owner returns the owner of that term in Redis.
func (s *serverLock) owner(term uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lock.Owner(term)
}
