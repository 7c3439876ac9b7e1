package semaphore

import (
	"errors"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// shared implements explore.Synchronizer.
type shared struct {
	*scene
	processes []process
	redis     redis
}

// process is a pool, and its clients.
type process struct {
	pool Pool
	// number is of its last command. record is what Redis has of that, and permits how many the process
	// has by Redis's count.
	number  uint64
	record  record
	permits int
	// forgiven is how many permits a Drain has added to a negative number.
	forgiven int
	clients  []client
	// forgot says that the process has given up a command of which nothing is known.
	forgot bool
}

// record is what Redis remembers of a process's last command.
type record struct {
	number uint64
	reply  Result
	gone   bool // Redis has forgotten it
}

// redis is the permits that are free, or the count of a latch with the ids that were counted. entries are the wait
// queue.
type redis struct {
	free    int
	ids     []string
	entries []entry
}

// entry is the entry of a process.
type entry struct {
	process, wants int
	ends           Instant
}

// client is a caller with a want, and has how many permits it has. open says that the latch has been
// open since it asked, and counted that its count-down counts by its answer; uncounted that it does not.
// givesBack is how many permits it has given back without an answer so far.
type client struct {
	explore.Client
	has, givesBack           int
	open, counted, uncounted bool
}

func (s *shared) Clone() *shared {
	c := *s
	c.processes = slices.Clone(s.processes)
	c.redis.ids, c.redis.entries = slices.Clip(s.redis.ids), slices.Clone(s.redis.entries)
	for i := range c.processes {
		p := &c.processes[i]
		p.clients = slices.Clone(p.clients)
		p.pool.effects = machine.Effects{}
		p.pool.queue.Clip()
		p.pool.pendingReturns, p.pool.changes = slices.Clip(p.pool.pendingReturns), slices.Clip(p.pool.changes)
		p.pool.rejects.returns = slices.Clip(p.pool.rejects.returns)
	}
	return &c
}

func (s *shared) Core(i int, scratch bool) explore.Core {
	p := &s.processes[i]
	if !p.pool.HasNextNumber() {
		p.number++
		p.pool.SetNextNumber(p.number)
	}
	if scratch {
		pool := p.pool
		return &pool
	}
	return &p.pool
}

func (s *shared) Replied(c explore.Core, now Instant, command, result any) {
	c.(*Pool).Replied(now, command.(Command).Number, result.(Result))
}

func (s *shared) Failure(transient, unsure bool) any {
	return Result{Failure: machine.Failure{Err: errors.New("loading"), Transient: transient, Unsure: unsure}}
}

func (s *shared) CarryOut(n *explore.Net, i int) {
	p := &s.processes[i].pool
	for e := (machine.Effect{}); p.NextEffect(&e); {
		switch e.Kind {
		case machine.Send:
			n.Send(i, *e.Ref.(*Command))
		case machine.Reply:
			s.answered(n, i, e.Ref.(int), e.Answer)
		case machine.Subscribe:
			n.Subscribe(i)
		case machine.Unsubscribe:
			n.Unsubscribe(i)
		case machine.Forgotten:
			if n.Spent[explore.Sleep] == 0 {
				n.Violated("p%d has forgotten something: %s", i, e.Answer.Detail)
			}
			s.processes[i].forgot = true
		}
	}
}

// Execute does what the scripts do.
func (s *shared) Execute(n *explore.Net, i int, command any) any {
	c, p := command.(Command), &s.processes[i]
	run := s.run
	if s.latch {
		run = s.runLatch
	}
	switch {
	case s.forgets, c.Kind == Inspect, s.latch && c.Kind == Take:
		return run(n, c, i)
	case c.Number == p.record.number && p.record.gone:
		n.Violated("p%d: a command is carried out twice: %+v", i, c)
	case c.Number == p.record.number:
		return p.record.reply
	case c.Number < p.record.number:
		return nil // LATE, of which the pool does not hear
	}
	p.record = record{number: c.Number, reply: run(n, c, i)}
	return p.record.reply
}

func (s *shared) run(n *explore.Net, c Command, i int) (reply Result) {
	r, before, reserved := &s.redis, s.redis.free, 0
	r.entries = slices.DeleteFunc(r.entries, func(e entry) bool { return n.Now >= e.ends || n.Dead(e.process) })
	switch c.Kind {
	case Take:
		reserved = s.reserved(i)
		for _, want := range c.Wanted {
			if want > r.free-reserved {
				break
			}
			r.free -= want
			reply.N[0]++
		}
		if c.Entry.N == 0 || reply.N[0] > 0 {
			s.leave(n, i)
		}
		if int(reply.N[0]) < len(c.Wanted) && c.Entry.N > 0 {
			s.enter(n, i, c.Entry)
		}
	case Yield, Give, Add:
		own := slices.ContainsFunc(r.entries, func(e entry) bool { return e.process == i })
		if c.Kind == Yield && len(r.entries) == 0+map[bool]int{true: 1}[own] && !c.Forced {
			break
		}
		if c.Kind == Yield || c.Leaves {
			s.leave(n, i)
		}
		r.free += int(c.N)
		reply.N[0] = 1
		if len(r.entries) == 0 {
			n.Publish()
		}
		s.wake(n, before)
	case Drain:
		reply.N[0] = int64(r.free)
		s.processes[i].forgiven += max(-r.free, 0)
		r.free = 0
	case Inspect:
		reply.N[0] = int64(r.free)
	}
	if c.Kind != Add {
		s.processes[i].permits += before - r.free
	}
	if c.Kind != Inspect {
		reply.N[1] = int64(r.free - reserved)
	}
	return reply
}

// reserved returns how many of the free permits are for processes that have waited for longer than process i.
func (s *shared) reserved(i int) (n int) {
	for _, e := range s.redis.entries {
		if e.process == i {
			break
		}
		n += e.wants
	}
	return min(n, max(s.redis.free, 0))
}

// leave removes the entry of a process. Those behind it are woken.
func (s *shared) leave(n *explore.Net, i int) {
	before := len(s.redis.entries)
	s.redis.entries = slices.DeleteFunc(s.redis.entries, func(e entry) bool { return e.process == i })
	if len(s.redis.entries) < before {
		s.wake(n, 0)
	}
}

// enter adds or confirms the entry of a process.
func (s *shared) enter(n *explore.Net, i int, of Entry) {
	e := entry{process: i, wants: of.N, ends: n.Now + of.TTL}
	if at := slices.IndexFunc(s.redis.entries, func(e entry) bool { return e.process == i }); at >= 0 {
		s.redis.entries[at] = e
	} else {
		s.redis.entries = append(s.redis.entries, e)
	}
}

// wake wakes the processes for which the free permits suffice now, and did not before.
func (s *shared) wake(n *explore.Net, before int) {
	sum := 0
	for _, e := range s.redis.entries {
		if sum += e.wants; sum > before && sum <= s.redis.free {
			n.Wake(e.process)
		}
	}
}

func (s *shared) runLatch(n *explore.Net, c Command, _ int) (reply Result) {
	r, before := &s.redis, s.redis.free
	switch {
	case c.Kind == Set && before == 0:
		r.free, r.ids = int(c.N), nil
	case c.Kind == Give && before > 0:
		for _, id := range c.IDs {
			if !slices.Contains(r.ids, id) {
				r.ids = append(r.ids, id)
				r.free--
			}
		}
		r.free = max(r.free-int(c.N), 0)
	}
	if (before == 0) != (r.free == 0) {
		n.Publish()
	}
	for i := range s.processes {
		for k := range s.processes[i].clients {
			other := &s.processes[i].clients[k]
			other.open = other.open || r.free == 0
		}
	}
	if reply.N[0] = int64(r.free); c.Kind == Set {
		reply.N[0], reply.N[1] = map[bool]int64{true: 1}[before == 0], reply.N[0]
	}
	return reply
}

func (s *shared) NextEnd(*explore.Net) Instant { return 0 }

func (s *shared) Wishes(n *explore.Net, i int) (all []explore.Wish) {
	for k := range s.processes[i].clients {
		all = s.processes[i].clients[k].Wishes(all, k, s.clients[i][k].does == 0, s.again && !n.Calm)
	}
	return all
}

func (s *shared) Do(n *explore.Net, i int, w explore.Wish) {
	s.Core(i, false)
	k := w.Client
	p, c, want := &s.processes[i].pool, &s.processes[i].clients[k], s.clients[i][k]
	bound := n.Now + tinyConfig.TryTime()
	switch w.What {
	case explore.Withdraws:
		p.Cancel(n.Now, c.ID, 0, nil)
		return
	case explore.Dies:
		p.OwnerGone(n.Now, machine.Owner(k+1))
		c.State = explore.Dead
		return
	case explore.GivesBack:
		c.State, c.By = explore.Releasing, bound
		p.Release(n.Now, c.has, k == 0, k)
		c.has, c.givesBack = 0, c.has
		return
	}
	c.State, c.By = explore.Asking, bound
	c.ID = 1
	for _, other := range s.processes[i].clients {
		c.ID = max(c.ID, other.ID+1)
	}
	req := Request{Request: machine.Request{ID: c.ID, Owner: machine.Owner(k + 1), Try: want.try, Ref: k}, N: want.n}
	if want.wait > 0 {
		req.Deadline = n.Now + want.wait
	}
	if want.does == 0 && !want.try {
		c.By = req.Deadline
	}
	c.open = s.redis.free == 0
	switch {
	case want.does == Give:
		p.CountDown(n.Now, want.id, k)
	case want.does != 0:
		p.Change(n.Now, Change{Kind: want.does, N: int64(want.n), Ref: k})
	default:
		p.Acquire(n.Now, req)
	}
}

func (s *shared) answered(n *explore.Net, i, k int, a machine.Answer) {
	p := &s.processes[i]
	c := &p.clients[k]
	rejected := a.Kind == machine.NotFreed && a.Reason == machine.Rejected // nothing was given back or counted
	if rejected && s.left {
		c.Answered(n, false)
		s.Core(i, false)
		if s.latch {
			p.pool.CountDown(n.Now, s.clients[i][k].id, nil)
		} else {
			p.pool.Release(n.Now, c.givesBack, true, nil)
		}
		return
	}
	if rejected {
		c.Answered(n, c.givesBack > 0)
		c.has, c.uncounted = c.givesBack, s.latch
		return
	}
	granted := a.Kind == machine.Granted || a.Kind == machine.Changed && s.clients[i][k].does == Drain
	c.Answered(n, a.N > 0 && granted)
	c.has, c.counted = 0, s.latch && a.Kind == machine.Freed
	if a.Reason == machine.Unavailable && n.Faultless() {
		n.Violated("p%d: client %d is refused: %s", i, k, a.Detail)
	} else if !granted {
		return
	}
	if c.has = int(a.N); c.has < 0 { // its client knows that it has set the number to zero
		p.permits, p.forgiven, c.has = p.permits-c.has, p.forgiven+c.has, 0
	}
	if s.latch && !c.open {
		n.Violated("p%d: client %d passes a latch that has been closed since it came", i, k)
	}
	for other := range p.clients {
		o, acquire := &p.clients[other], s.clients[i][k].does == 0 && s.clients[i][other].does == 0
		if !s.latch && acquire && o.State == explore.Asking && o.ID < c.ID {
			n.Violated("p%d: client %d is served before %d", i, k, other)
		}
	}
}

func (s *shared) Kill(i int) {
	p := &s.processes[i]
	for k := range p.clients {
		p.clients[k].has = 0
	}
	*p = process{permits: p.permits, forgiven: p.forgiven, record: p.record, clients: p.clients}
}

func (s *shared) Copied(any) bool { return true }

func (s *shared) Forget() {
	for i := range s.processes {
		s.processes[i].record.gone = true
	}
}

func (s *shared) Process(i int) any { return s.processes[i] }

func (s *shared) Redis() any { return s.redis }
