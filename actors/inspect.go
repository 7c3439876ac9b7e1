package actors

import (
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// inspect asks Redis about the lock.
func (s *lockState) inspect(source any, call *request.Call) {
	s.accepted = source
	if s.inspections == nil {
		s.inspections = map[*request.Call]struct{}{}
	}
	s.inspections[call] = struct{}{}
	s.setAlarm()
	deadline := time.Now().Add(s.rt.cfg.CallTimeout)
	s.kind.Inspect(deadline, func(status *messages.Status, refusal *machine.Answer) {
		s.rt.Deliver(s.pid, &inspection{call: call, status: status, refusal: refusal, deadline: deadline})
	})
}

// inspected adds to what Redis says what only this process knows.
func (s *lockState) inspected(m *inspection) {
	s.accepted = m
	if _, owed := s.inspections[m.call]; !owed {
		return
	}
	if m.refusal == nil && m.status.Locked && m.holder == nil {
		records.LookUp(m.status.Holder, s.keys()[0], s.rt.cfg.Record, s.servers(), m.deadline, func(h *records.Holder) {
			found := *m
			found.holder = h
			s.rt.Deliver(s.pid, &found)
		})
		return
	}
	delete(s.inspections, m.call)
	defer s.carryOut()
	if m.refusal != nil {
		m.call.Requester().Answered(s.rt, m.call, *m.refusal)
		return
	}
	here, status := s.machine.Snapshot(), m.status
	status.HeldHere, status.Waiters = here.HeldHere, int64(here.Waiters)
	s.addToken(status, &here)
	holders, _ := s.machine.Outstanding()
	s.addAges(status, holders)
	if m.holder != nil {
		m.holder.AddTo(status)
	}
	m.call.Requester().Inspected(s.rt, m.call, status)
}

// refuseInspection answers an Inspect that fails.
func (s *lockState) refuseInspection(m *inspection, reason machine.Reason, detail string) {
	if _, owed := s.inspections[m.call]; owed {
		delete(s.inspections, m.call)
		answer := request.Refusal(request.OpInspect, reason, detail)
		m.call.Requester().Answered(s.rt, m.call, answer)
	}
}

// servers are those that the lock is on.
func (s *lockState) servers() []*backend.Server {
	all := []*backend.Server{s.rt.server}
	for _, each := range s.members {
		if server := each.System.(*Runtime).server; !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// keys are those of the lock in Redis: several for a MultiLock.
func (s *lockState) keys() (keys []string) {
	if s.key.made != kinds.Members {
		return []string{s.rt.cfg.KeyPrefix + s.key.name}
	}
	for _, each := range s.members {
		keys = append(keys, each.System.Rules().KeyPrefix+each.Name)
	}
	return keys
}
