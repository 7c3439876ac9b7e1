package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// redis is the permits that are free and those that are taken, and how many were made.
type redis struct {
	free, made int
	issued     []issued
	// set: a number of permits is set. lost are the permits that were taken when Redis lost its data.
	set  bool
	lost []machine.PermitID
	// waits is the Restore that waits, and saved the one in the last snapshot.
	waits, saved restore
	// reserved is the number of the process for which permits are reserved, from 1, and reservedUntil for how long; 0
	// for none.
	reserved      int
	reservedUntil Instant
}

// restore is a Restore that waits: at is when it is to be done, 0 if none waits, and taken how many permits are taken
// then. old: it began in another memory.
type restore struct {
	at    Instant
	taken int
	old   bool
}

// issued is a permit that was taken.
type issued struct {
	id    machine.PermitID
	until Instant
}

// Execute does what the scripts do.
func (s *shared) Execute(n *explore.Net, i int, command any) any {
	c, record := command.(Command), &s.processes[i].record
	switch {
	case c.Kind == Renew:
		return s.renewed(n, c)
	case c.Number == record.number && record.gone && c.Kind != Release: // which frees no permit twice
		n.Violated("p%d: a command is carried out twice: %+v", i, c)
	case c.Number == record.number && !record.gone:
		return record.reply
	case c.Number < record.number && c.Kind != Release:
		return nil // LATE, which is about a command that is no longer under way
	}
	reply := s.run(n, i, c)
	if c.Number > record.number {
		record.number, record.reply, record.gone = c.Number, reply, false
	}
	return reply
}

func (s *shared) renewed(n *explore.Net, c Command) (reply Result) {
	for _, id := range c.IDs {
		k := s.redis.find(id)
		valid := k >= 0 && s.redis.issued[k].until > n.Now
		if valid {
			s.redis.issued[k].until = n.Now + c.Lease
		}
		reply.Valid = append(reply.Valid, valid)
	}
	return reply
}

func (s *shared) run(n *explore.Net, i int, c Command) (reply Result) {
	r := &s.redis
	switch c.Kind {
	case Acquire:
		if !r.set {
			if r.reserved == i+1 {
				r.reserved = 0
			}
			return Result{Missing: true, Wait: -1}
		}
		before := len(r.issued)
		r.issued = slices.DeleteFunc(r.issued, func(p issued) bool { return p.until <= n.Now })
		expired := before - len(r.issued)
		r.free += expired
		reply.Wait = -1
		for _, p := range r.issued {
			if at := p.until - n.Now; reply.Wait < 0 || at < reply.Wait {
				reply.Wait = at
			}
		}
		ids, wanted := c.IDs, 0
		mine, others := r.reserved == i+1 && n.Now < r.reservedUntil, r.reserved != i+1 && r.reserved != 0 && n.Now < r.reservedUntil
		for k, count := range c.Counts {
			if wanted = count; count > r.free || others {
				break
			}
			for _, id := range ids[:count] {
				r.issued = append(r.issued, issued{id, n.Now + c.Leases[k]})
			}
			ids, wanted = ids[count:], 0
			r.free -= count
			reply.Served++
		}
		reserves := reply.Served == 0 && wanted > 1 && c.Reserve > 0 && !others && wanted <= r.free+len(r.issued)
		if reserves {
			r.reserved, r.reservedUntil = i+1, n.Now+c.Reserve
		} else if mine {
			r.reserved = 0
		}
		if r.free > 0 && (expired > 0 || mine && !reserves) {
			n.Publish()
		}
	case Release:
		freed, ids := false, c.IDs
		for _, count := range c.Counts {
			all := true
			for _, id := range ids[:count] {
				k := r.find(id)
				if all = all && k >= 0; k < 0 {
					continue
				}
				r.issued = slices.Delete(r.issued, k, k+1)
				if freed = true; r.set {
					r.free++
					continue
				}
				r.made--
				r.waits.taken--
			}
			reply.Valid, ids = append(reply.Valid, all), ids[count:]
		}
		if freed && r.free > 0 {
			reply.Receivers = n.Listeners()
			n.Publish()
		}
	case Set:
		more := c.Count
		switch {
		case c.Mode == SetTotal:
			more -= r.made
		case c.Mode == Restore && r.set:
			r.waits = restore{}
			return reply
		case c.Mode == Restore:
			if r.waits.at == 0 || r.waits.old || r.waits.taken != len(r.issued) {
				r.waits = restore{at: n.Now + c.Lease, taken: len(r.issued)}
				r.saved = r.waits
			}
			if reply.Wait = r.waits.at - n.Now; reply.Wait > 0 {
				return reply
			}
			more -= r.made // the permits that are taken
		}
		r.waits, reply.Wait = restore{}, 0
		r.free, r.made, r.set, reply.Done = r.free+more, r.made+more, true, true
		for k, id := range c.IDs {
			if r.find(id) < 0 {
				r.issued = append(r.issued, issued{id, n.Now + c.Leases[k]})
				r.free--
			}
		}
		if more != 0 && c.Count > 0 {
			n.Publish()
		}
	}
	return reply
}

func (r *redis) find(id machine.PermitID) int {
	return slices.IndexFunc(r.issued, func(p issued) bool { return p.id == id })
}
