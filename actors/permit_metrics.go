package actors

import (
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/permit"
)

// measure measures the answer to a request.
func (s *permitState) measure(q *PermitRequest, a permit.Answer) {
	m := s.rt.metrics
	if m == nil || q.Op != PermitAcquire {
		return
	}
	result := "granted"
	if a.Kind == permit.Refused {
		result = "refused"
		m.permitsTurnedAway(q, a.Reason)
	} else {
		way := "redis"
		if a.HandedOn {
			way = "hand_off"
		}
		m.add(sample{instrument: grants, made: s.key.made, what: way}, 1)
	}
	m.time(sample{instrument: waitTime, made: s.key.made, what: result}, s.rt.Now()-q.from)
}

// permitsTurnedAway counts a refused request, also one that no pool has seen.
func (m *metrics) permitsTurnedAway(q *PermitRequest, reason lock.Reason) {
	if m != nil && q.Op == PermitAcquire {
		m.add(sample{instrument: refusals, made: q.key().made, what: reasonWord(reason)}, 1)
	}
}

// gauge tells the metrics how many wait. It compares, since they come and go in many ways.
func (s *permitState) gauge() {
	m := s.rt.metrics
	if m == nil {
		return
	}
	if now := s.pool.Waiters(); now != s.waiters {
		m.add(sample{instrument: waiters, made: s.key.made}, int64(now-s.waiters))
		s.waiters = now
	}
}
