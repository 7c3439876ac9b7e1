package actors

import (
	"context"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/status"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// inspect asks Redis about the lock.
func (s *lockActor) inspect(source any, call *request.Call) {
	s.accepted = source
	if s.inspections == nil {
		s.inspections = map[*request.Call]struct{}{}
	}
	s.inspections[call] = struct{}{}
	s.setAlarm()
	deadline := time.Now().Add(s.rt.cfg.CallTimeout)
	s.adapter.Inspect(deadline, func(status *messages.Status, refusal *machine.Answer) {
		s.rt.Deliver(s.pid, &inspection{call: call, status: status, refusal: refusal, deadline: deadline})
	})
}

// inspected adds to the state in Redis what only this process knows, and answers the Inspect.
func (s *lockActor) inspected(m *inspection) {
	s.accepted = m
	if _, pending := s.inspections[m.call]; !pending {
		return
	}
	if m.refusal == nil && m.status.Locked && m.holder == nil {
		records.LookUp(m.status.Holder, s.keys()[0], s.rt.ownRecord(), s.servers(), m.deadline, func(h *records.Holder) {
			found := *m
			found.holder = h
			s.rt.Deliver(s.pid, &found)
		})
		return
	}
	delete(s.inspections, m.call)
	defer s.carryOut()
	if m.refusal != nil {
		m.call.Requester().Answered(s.rt, m.call, m.refusal)
		return
	}
	s.local().AddTo(m.status)
	if m.holder != nil {
		m.holder.AddTo(m.status)
	}
	m.call.Requester().Inspected(s.rt, m.call, m.status)
}

// refuseInspection answers an Inspect that fails.
func (s *lockActor) refuseInspection(m *inspection, reason machine.Reason, detail string) {
	if _, pending := s.inspections[m.call]; pending {
		delete(s.inspections, m.call)
		answer := request.Refusal(request.OpInspect, reason, detail)
		m.call.Requester().Answered(s.rt, m.call, &answer)
	}
}

// servers returns the servers that the lock is on.
func (s *lockActor) servers() []*backend.Server {
	all := []*backend.Server{s.rt.server}
	for _, each := range s.members {
		if server := each.System.(*Runtime).server; !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// keys returns the keys of the lock in Redis: several for a MultiLock.
func (s *lockActor) keys() (keys []string) {
	if s.key.Made != request.SeveralLocks {
		return []string{s.rt.cfg.KeyPrefix + s.key.Name}
	}
	for _, each := range s.members {
		keys = append(keys, each.System.Rules().KeyPrefix+each.Name)
	}
	return keys
}

// listBatch lock actors are asked before their answers are read.
const listBatch = 256

// Locks returns the state of every lock that the system holds or waits for, and of every semaphore and
// latch that it waits for, as far as it is known without Redis. It asks each lock actor in turn. complete
// is false if ctx ends first.
func (r *Runtime) Locks(ctx context.Context) (all []*messages.Status, complete bool) {
	var asked []*request.Call
	read := func() bool {
		for _, call := range asked {
			_, out := call.Future.Await(ctx.Done())
			if out == nil {
				return false
			}
			if out.Status != nil {
				all = append(all, out.Status)
			}
			out.Free()
		}
		asked = asked[:0]
		return true
	}
	for s := range r.locks.All {
		if !s.gate.Enter() { // it is leaving, and was idle
			continue
		}
		call := &request.Call{Op: request.OpList, Kind: s.format, Name: s.key.Name}
		asked = append(asked, call)
		s.process.SendUserMessage(s.pid, call)
		if len(asked) == listBatch && !read() {
			return nil, false
		}
	}
	return all, read()
}

// local returns what is known of the lock without Redis.
func (s *lockActor) local() status.Lock {
	return status.Lock{Machine: s.machine, Label: s.observer.Label(), Several: len(s.members) > 0, Now: s.rt.Now()}
}

// show keeps up to date what others read of the lock.
func (s *lockActor) show() {
	now := s.machine.Summary()
	if until := int64(now.LeaseUntil); s.until.Load() != until {
		s.until.Store(until)
	}
	if now.Holds == 0 {
		now.Term = 0
	}
	s.shown.Set(now.Term, now.Waiters, s.now)
}

// ownRecord returns the record of the system with its notes; nil if it keeps none.
func (r *Runtime) ownRecord() *records.Record {
	if r.cfg.Record == nil {
		return nil
	}
	own := *r.cfg.Record
	r.notes.AddTo(&own)
	return &own
}

// Systems returns the processes of all systems that have a record in this Redis; ctx bounds the wait.
func (r *Runtime) Systems(ctx context.Context) ([]*messages.Process, error) {
	return records.List(ctx, r.server)
}

// addWork adds to the record the locks that are held or waited for here.
func (r *Runtime) addWork(record *records.Record) {
	work := records.WorkOf(record)
	defer work.End()
	r.notes.AddTo(record)
	for s := range r.locks.All {
		if kinds.Of(s.format).IsLock() && !work.Add(s.keys(), &s.shown, r.Now()) {
			return
		}
	}
}
