package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
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
	seen := func(v protocol.View, err error) {
		s.rt.Deliver(s.pid, &inspection{call: call, view: v, err: err, deadline: deadline})
	}
	s.variant.Inspect(deadline, seen)
}

// inspected adds to Redis's words what only this process knows.
func (s *lockState) inspected(m *inspection) {
	s.accepted = m
	if _, owed := s.inspections[m.call]; !owed {
		return
	}
	if m.err == nil && m.view.Locked && m.holder == nil {
		s.lookUpHolder(m)
		return
	}
	delete(s.inspections, m.call)
	defer s.carryOut()
	if m.err != nil {
		reason := machine.Rejected
		if err := (*redisio.Error)(nil); errors.As(m.err, &err) && err.Transient {
			reason = machine.Unavailable
		} else if errors.Is(m.err, protocol.ErrNoNumber) {
			reason = machine.NoPermits
		}
		m.call.Requester().Answered(s.rt, m.call, machine.Answer{Kind: machine.NotDone, Reason: reason, Detail: m.err.Error()})
		return
	}
	here, there := s.lock.Snapshot(), m.view
	status := &messages.Status{
		Locked: there.Locked, HeldHere: here.HeldHere, Holder: there.Holder, HoldCount: int64(there.Count), Ttl: request.Duration(there.TTL),
		Waiters: int64(here.Waiters), Subscribers: int64(there.Subscribers), Mode: messages.Mode(there.Mode), Holders: int64(there.Holders),
		Owners: there.Owners,
	}
	s.variant.describe(status, &here, &there)
	holders, _ := s.lock.Outstanding()
	s.addAges(status, holders)
	if m.holder != nil {
		status.Process = processOf(*m.holder)
		s.addRecord(status, m.holder)
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

// addRecord adds what the record of the holder's process says of the lock. Of this process it is known without.
func (s *lockState) addRecord(status *messages.Status, holder *Record) {
	if status.HeldHere {
		status.HolderWaiters, status.HeldAtLeast = &status.Waiters, status.HeldFor
		return
	}
	key := s.keys()[0]
	if n := holder.Waiters(key); n >= 0 {
		status.HolderWaiters = &n
	}
	if d := holder.HeldAtLeast(key, status.Holder); d > 0 {
		status.HeldAtLeast = request.Duration(d)
	}
}

// lookUpHolder finds out which process the holder is in, and brings the inspection again.
func (s *lockState) lookUpHolder(m *inspection) {
	again := *m
	found := func(r Record) {
		again.holder = &r
		s.rt.Deliver(s.pid, &again)
	}
	client := protocol.ClientOf(m.view.Holder)
	if own := s.rt.cfg.Record; own != nil && keyspace.SystemOf(client) == keyspace.SystemOf(own.Client) {
		found(*own)
		return
	}
	backend.RecordOf(client, s.servers(), m.deadline, found)
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
