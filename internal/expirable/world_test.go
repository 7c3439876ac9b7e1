package expirable

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// shared implements explore.Synchronizer.
type shared struct {
	*scene
	processes []process
	redis     redis
}

type process struct {
	permits Semaphore
	clients []client
	record  record
}

// record is what Redis remembers of a process's last command.
type record struct {
	number uint64
	reply  Result
	gone   bool // Redis has forgotten it
}

// client is a caller with a want. Its permits are good until then, as the grant or the last renewal says; robbed says
// that another client has freed it.
type client struct {
	explore.Client
	permits []machine.PermitID
	until   Instant
	robbed  bool
	// extended: it has asked for another lease. extendBy is when it must have the answer, 0 if it has it.
	extended bool
	extendBy Instant
}

// extends is the Ref of a client's request for another lease.
type extends int

func (s *shared) Clone() *shared {
	c := *s
	c.processes, c.redis.issued = slices.Clone(s.processes), slices.Clone(s.redis.issued)
	c.redis.lost = slices.Clip(s.redis.lost)
	for i := range c.processes {
		p := &c.processes[i]
		l := &p.permits
		p.clients = slices.Clone(p.clients)
		l.effects = machine.Effects{}
		l.queue.Clip()
		l.extensions = slices.Clip(l.extensions)
		l.holds, l.pendingReturns, l.sets = slices.Clip(l.holds), slices.Clip(l.pendingReturns), slices.Clip(l.sets)
	}
	return &c
}

func (s *shared) Core(i int, scratch bool) explore.Core {
	if scratch {
		permits := s.processes[i].permits
		return &permits
	}
	return &s.processes[i].permits
}

func (s *shared) Replied(c explore.Core, now Instant, command, result any) {
	c.(*Semaphore).Replied(now, command.(Command).Seq, result.(Result))
}

func (s *shared) Failure(transient, unsure bool) any {
	return Result{Failure: machine.Failure{Err: errors.New("loading"), Transient: transient, Unsure: unsure}}
}

func (s *shared) CarryOut(n *explore.Net, i int) {
	p := &s.processes[i]
	for e := (machine.Effect{}); p.permits.NextEffect(&e); {
		switch e.Kind {
		case machine.Send:
			n.Send(i, *e.Ref.(*Command))
		case machine.Subscribe:
			n.Subscribe(i)
		case machine.Unsubscribe:
			n.Unsubscribe(i)
		case machine.Reply:
			if k, is := e.Ref.(extends); is {
				s.extended(n, i, &p.clients[k], e.Answer)
				continue
			}
			s.answered(n, i, e.Ref.(int), e.Answer)
		case machine.Renewed:
			p.clients[e.Ref.(int)].until = e.Answer.Until
		case machine.NotifyLost:
			s.notified(n, i, e.Ref.(int), e.Answer)
		case machine.LeaveToExpire:
			n.Violated("p%d leaves a permit to expire", i)
		}
	}
}

func (s *shared) answered(n *explore.Net, i, k int, a machine.Answer) {
	c := &s.processes[i].clients[k]
	if a.Reason == machine.Unavailable && n.Faultless() {
		n.Violated("p%d: client %d is refused: %s", i, k, a.Detail)
	}
	if c.Answered(n, a.Kind == machine.Granted); a.Kind == machine.Granted {
		c.permits, c.until, c.robbed, c.extended = a.Permits.AppendTo(nil), a.Until, false, false
		if wants := max(s.clients[i][k].several, 1); len(c.permits) != wants {
			n.Violated("p%d: client %d has got %d permits, and wants %d", i, k, len(c.permits), wants)
		}
	} else if a.Kind == machine.NotFreed && a.Reason == machine.Lost && n.Now < c.until && !s.excused(c) {
		n.Violated("p%d: client %d has lost its permit, which was good until %v", i, k, c.until)
	}
}

// extended handles the answer to a client that has asked for another lease.
func (s *shared) extended(n *explore.Net, i int, c *client, a machine.Answer) {
	if c.extendBy == 0 {
		n.Violated("p%d: %+v has not asked for another lease", i, *c)
	}
	c.extendBy = 0
	if a.Kind == machine.Extended && (c.State != explore.Holding || a.Until != c.until) || a.Kind != machine.Extended && a.Detail == "" {
		n.Violated("p%d: %+v is answered %+v", i, *c, a)
	}
}

// excused reports whether another client has freed a client's permits, or Redis may have lost one.
func (s *shared) excused(c *client) bool {
	return c.robbed || slices.ContainsFunc(c.permits, func(id machine.PermitID) bool { return slices.Contains(s.redis.lost, id) })
}

// notified notes that a client was notified of a loss.
func (s *shared) notified(n *explore.Net, i, k int, a machine.Answer) {
	c := &s.processes[i].clients[k]
	switch want := s.clients[i][k]; {
	case c.State == explore.Dead, c.State == explore.Releasing:
		return // it was over before that was heard of
	case c.State != explore.Holding:
		n.Violated("p%d: client %d is notified that it has lost its permit, and has none", i, k)
	case !n.Faultless():
	case a.Reason == machine.Expired && want.lease == 0 && !c.extended, a.Reason == machine.Gone && !s.excused(c):
		n.Violated("p%d: client %d has lost its permit: %v", i, k, a.Reason)
	}
	c.State = explore.Done
}

func (s *shared) NextEnd(n *explore.Net) (next Instant) {
	for _, p := range s.redis.issued {
		if p.until > n.Now && (next == 0 || p.until < next) {
			next = p.until
		}
	}
	return next
}

const (
	frees   = "frees another's permit"
	forgets = "sees Redis come back empty"
	deletes = "sees the permits deleted"
	reloads = "sees Redis come back from a snapshot without a number"
	evicts  = "sees the number evicted, or then the permits that are taken"
	// The leases that a client may ask for.
	briefly  = "extends for 700 ms"
	atLength = "extends for 2 s"
	watched  = "extends by the watchdog"
)

var leases = map[string]time.Duration{briefly: 700 * ms, atLength: 2000 * ms, watched: 0}

func (s *shared) Wishes(n *explore.Net, i int) (all []explore.Wish) {
	for k := range s.processes[i].clients {
		c := &s.processes[i].clients[k]
		if all = c.Wishes(all, k, s.clients[i][k].mode == "", s.again && !n.Calm); c.State == explore.Holding {
			all = append(all, explore.Wish{Client: k, What: explore.Dies, Costs: explore.Leave})
			for _, lease := range s.clients[i][k].leases {
				if c.extendBy == 0 {
					all = append(all, explore.Wish{Client: k, What: lease, Costs: explore.Leave})
				}
			}
			if s.empties {
				all = append(all,
					explore.Wish{Client: k, What: forgets, Costs: explore.Meddle},
					explore.Wish{Client: k, What: deletes, Costs: explore.Meddle})
				if s.redis.saved.at != 0 {
					all = append(all, explore.Wish{Client: k, What: reloads, Costs: explore.Meddle})
				}
			}
			if s.evicts && (s.redis.set || len(s.redis.issued) > 0) {
				all = append(all, explore.Wish{Client: k, What: evicts, Costs: explore.Meddle})
			}
			if s.clients[i][k].shown {
				all = append(all, explore.Wish{Client: k, What: frees, Costs: explore.Meddle})
			}
		}
	}
	return all
}

func (s *shared) Do(n *explore.Net, i int, w explore.Wish) {
	k := w.Client
	p, c, want := &s.processes[i].permits, &s.processes[i].clients[k], s.clients[i][k]
	bound := n.Now + tinyConfig.TryTime()
	switch w.What {
	case explore.Withdraws:
		p.Cancel(n.Now, c.ID, 0, nil)
	case explore.Dies:
		p.OwnerGone(n.Now, machine.Owner(k+1))
		c.State = explore.Dead
	case explore.GivesBack:
		c.State, c.By = explore.Releasing, bound
		p.Release(n.Now, machine.Release{ID: c.ID, Ref: k})
	case briefly, atLength, watched:
		c.extended, c.extendBy = true, bound
		p.Extend(n.Now, c.ID, 0, leases[w.What], extends(k))
	case frees:
		c.robbed = true
		other := (i + 1) % len(s.processes)
		if n.Dead(other) {
			other = i
		}
		s.processes[other].permits.ReleaseID(n.Now, c.permits[len(c.permits)-1], nil)
		s.CarryOut(n, other)
	case evicts:
		if r := &s.redis; r.set {
			r.set, r.free, r.made = false, 0, len(r.issued)
			break
		}
		s.lose(s.redis.waits)
	case deletes: // by Redisson, which leaves what is only ours
		s.lose(s.redis.waits)
	case forgets, reloads:
		if s.lose(restore{}); w.What == reloads {
			s.redis.waits = s.redis.saved
			s.redis.waits.old = true
		}
		for i := range s.processes {
			s.processes[i].record = record{}
		}
	case explore.Asks:
		c.ID = 1
		for _, other := range s.processes[i].clients {
			c.ID = max(c.ID, other.ID+1)
		}
		c.State, c.By = explore.Asking, 0
		if want.mode != "" {
			p.Set(n.Now, want.mode, want.count, k)
			return
		}
		req := Request{
			Request: machine.Request{
				ID: c.ID, Owner: machine.Owner(k + 1), Lease: want.lease, MaxHold: want.most, Try: want.try, Ref: k,
			},
			Random: machine.PermitID{byte(i + 1), byte(k + 1)}, Count: max(want.several, 1), Shown: want.shown, Total: want.total,
		}
		if want.wait > 0 {
			req.Deadline = n.Now + want.wait
			c.By = req.Deadline
		}
		if want.try {
			c.By = bound
		}
		p.Acquire(n.Now, req)
	}
}

// lose makes Redis lose its data, except a Restore that waits, and its snapshot.
func (s *shared) lose(waits restore) {
	for _, issued := range s.redis.issued {
		s.redis.lost = append(s.redis.lost, issued.id)
	}
	s.redis = redis{lost: s.redis.lost, waits: waits, saved: s.redis.saved}
}

func (s *shared) Kill(i int) {
	p := &s.processes[i]
	*p = process{record: p.record, permits: New(&tinyConfig), clients: make([]client, len(p.clients))}
}

// Copied: a Renew has no number. It is sent once, and a copy would set an earlier lease.
func (s *shared) Copied(command any) bool { return command.(Command).Kind != Renew }

func (s *shared) Forget() {
	for i := range s.processes {
		s.processes[i].record.gone = true
	}
}

func (s *shared) Check(n *explore.Net) {
	var trusted []machine.PermitID
	for i := range s.processes {
		p := &s.processes[i]
		wake, ok := p.permits.NextWake()
		if p.permits.remembersLateEnd() {
			n.Violated("p%d: something is over before %v", i, Instant(p.permits.nextEnd))
		}
		if reserved := s.redis.reserved; reserved != 0 && reserved != i+1 && n.Now < s.redis.reservedUntil {
			if n.Quiet() && !n.Dead(reserved-1) && s.processes[reserved-1].permits.reserved == 0 {
				n.Violated("permits are reserved for p%d, which does not want them", reserved-1)
			}
		} else if n.Quiet() && (!ok || wake > n.Now) && p.permits.queue.Len() > 0 && !p.permits.wait.defers {
			if s.redis.free >= p.permits.queue.Head().Count {
				n.Violated("p%d: its first waiter sleeps, and %d are free", i, s.redis.free)
			}
		}
		for k, c := range p.clients {
			c.Check(n, &p.permits)
			switch {
			case c.extendBy != 0 && n.Now >= c.extendBy && !n.Dead(i) && (!ok || wake > n.Now):
				n.Violated("p%d: client %d gets no answer in time about another lease", i, k)
			case c.State != explore.Holding:
			case n.Now >= c.until && (!ok || wake > n.Now):
				n.Violated("p%d: client %d was not notified that its permit is over", i, k)
			case n.Now < c.until && !c.robbed:
				for _, permit := range c.permits {
					if slices.Contains(trusted, permit) {
						n.Violated("p%d: client %d trusts a permit that another does", i, k)
					}
					trusted = append(trusted, permit)
					if at := s.redis.find(permit); !s.excused(&c) && (at < 0 || s.redis.issued[at].until < c.until) {
						n.Violated("p%d: client %d trusts its permit until %v, and Redis has %+v", i, k, c.until, s.redis)
					}
				}
			}
		}
	}
	for _, p := range s.redis.issued {
		if n.Quiet() && p.until > n.Now && !s.isKnown(p.id) {
			n.Violated("the permit %v stays taken until %v, and no process knows of it", p.id, p.until)
		}
	}
	if (s.empties || s.evicts) && len(trusted) > s.permits {
		n.Violated("%d permits are trusted, and there are %d", len(trusted), s.permits)
	}
	if all := s.redis.free + len(s.redis.issued); all != s.redis.made {
		n.Violated("there are %d permits, and %d were made", all, s.redis.made)
	}
}

// remembersLateEnd reports whether something is over before nextEnd, so that a Tick would be late.
func (s *Semaphore) remembersLateEnd() bool {
	anew := *s
	anew.findNextEnd()
	first, ends := anew.nextEnd.Get()
	return ends && !s.nextEnd.Reached(first)
}

// isKnown reports whether a process has a permit, or is about to give it back.
func (s *shared) isKnown(id machine.PermitID) bool {
	for i := range s.processes {
		p := &s.processes[i].permits
		if slices.ContainsFunc(p.holds, func(h *hold) bool { return h.permits.Has(id) }) ||
			slices.ContainsFunc(p.pendingReturns, func(b permitReturn) bool { return b.permits.Has(id) }) {
			return true
		}
	}
	return false
}

func (s *shared) Settled(n *explore.Net) {
	for _, p := range s.redis.issued {
		if p.until > n.Now {
			n.Violated("a permit stays taken until %v", p.until)
		}
	}
	for i := range s.processes {
		p := &s.processes[i]
		wants := p.permits.queue.Len() > 0 && p.permits.queue.Head().Count > s.redis.made // the others stand behind it
		for k, c := range p.clients {
			waits := c.State == explore.Asking && s.clients[i][k].mode == "" && (s.redis.made <= 0 || wants)
			if c.State < explore.Done && !waits && !n.Dead(i) {
				n.Violated("p%d: client %d is not at its end: %+v", i, k, c)
			}
		}
		if p.permits.queue.Len() == 0 && !p.permits.Idle() {
			n.Violated("p%d does not come to rest: %+v", i, p.permits)
		}
	}
}

func (s *shared) Process(i int) any { return s.processes[i] }

func (s *shared) Redis() any { return s.redis }
