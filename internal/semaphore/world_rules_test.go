package semaphore

import (
	"cmp"
	"fmt"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

func (s *shared) Check(n *explore.Net) {
	for i := range s.processes {
		if n.Dead(i) {
			continue
		}
		p, held := &s.processes[i], 0
		for k := range p.clients {
			held += p.clients[k].has
			p.clients[k].Check(n, &p.pool)
		}
		if held > p.permits+p.forgiven {
			n.Violated("p%d: clients have %d permits, and Redis has given %d", i, held, p.permits)
		}
		if at, ok := p.pool.NextWake(); n.Quiet() && (!ok || at > n.Now) && s.served(i) && n.Now >= p.pool.wait.deferUntil {
			n.Violated("p%d: its first waiter sleeps, and there are %d", i, s.redis.free)
		}
	}
	if s.latch {
		s.checkCount(n, false)
	}
}

// served reports whether the first waiter of a process could have what he waits for.
func (s *shared) served(i int) bool {
	p := &s.processes[i]
	if p.pool.queue.Len() == 0 {
		return false
	} else if s.latch {
		return s.redis.free == 0
	}
	return s.redis.free-s.reserved(i) >= p.pool.queue.Head().N
}

// checkCount compares the count with the requests to be counted. Those whose answer says so have been,
// and at rest all have whose process lives; the others may have been.
func (s *shared) checkCount(n *explore.Net, rests bool) {
	most, least := map[string]bool{}, map[string]bool{}
	for i := range s.processes {
		for k, c := range s.processes[i].clients {
			want := s.clients[i][k]
			if want.does == Set {
				return // what is counted down then is of one round or of another
			} else if want.does != Give || c.State == explore.Fresh {
				continue
			}
			who := cmp.Or(want.id, fmt.Sprint(i, ".", k))
			if c.uncounted {
				continue
			}
			most[who] = true
			if c.counted || rests && !n.Dead(i) && !s.processes[i].forgot {
				least[who] = true
			}
		}
	}
	if got := s.redis.free; got < max(s.count-len(most), 0) || got > max(s.count-len(least), 0) {
		n.Violated("the count of %d is %d, when %v have counted down, and %v may have", s.count, got, least, most)
	}
}

func (s *shared) Settled(n *explore.Net) {
	if s.latch {
		s.checkCount(n, true)
	}
	for i := range s.processes {
		p, waiting := &s.processes[i], 0
		for k, c := range p.clients {
			if c.State == explore.Asking && s.clients[i][k].does == 0 {
				waiting++
			} else if c.State < explore.Done && !n.Dead(i) {
				n.Violated("p%d: client %d is not at its end", i, k)
			}
		}
		switch {
		case n.Dead(i):
		case p.pool.queue.Len() != waiting:
			n.Violated("p%d: %d wait, and the pool knows of %d", i, waiting, p.pool.queue.Len())
		case s.served(i):
			n.Violated("p%d: a client waits though there are %d", i, s.redis.free)
		case p.permits != 0 && !p.forgot:
			n.Violated("p%d: %d permits are missing", i, p.permits)
		}
	}
}
