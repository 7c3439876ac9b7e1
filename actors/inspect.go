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
func (a *lockActor) inspect(source any, call *request.Call) {
	a.accepted = source
	if a.inspections == nil {
		a.inspections = map[*request.Call]struct{}{}
	}
	a.inspections[call] = struct{}{}
	a.setAlarm()
	deadline := time.Now().Add(a.rt.cfg.CallTimeout)
	a.adapter.Inspect(deadline, func(status *messages.Status, refusal *machine.Answer) {
		a.rt.Deliver(a.pid, &inspection{call: call, status: status, refusal: refusal, deadline: deadline})
	})
}

// inspected adds what this process knows to the state in Redis, and answers the Inspect.
func (a *lockActor) inspected(m *inspection) {
	a.accepted = m
	if _, pending := a.inspections[m.call]; !pending {
		return
	}
	if m.refusal == nil && m.status.Locked && m.holder == nil {
		records.LookUp(m.status.Holder, a.keys()[0], a.rt.ownRecord(), a.servers(), m.deadline, func(h *records.Holder) {
			found := *m
			found.holder = h
			a.rt.Deliver(a.pid, &found)
		})
		return
	}
	delete(a.inspections, m.call)
	defer a.carryOut()
	if m.refusal != nil {
		m.call.Requester().Answered(a.rt, m.call, m.refusal)
		return
	}
	a.local().AddTo(m.status)
	if m.holder != nil {
		m.holder.AddTo(m.status, a.rt.id)
	}
	m.call.Requester().Inspected(a.rt, m.call, m.status)
}

// refuseInspection answers an Inspect that fails.
func (a *lockActor) refuseInspection(m *inspection, reason machine.Reason, detail string) {
	if _, pending := a.inspections[m.call]; pending {
		delete(a.inspections, m.call)
		answer := request.Refusal(request.OpInspect, reason, detail)
		m.call.Requester().Answered(a.rt, m.call, &answer)
	}
}

// servers returns the servers that the lock is on.
func (a *lockActor) servers() []*backend.Server {
	all := []*backend.Server{a.rt.server}
	for _, each := range a.members {
		if server := each.System.(*Runtime).server; !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// keys returns the keys of the lock in Redis: several for a MultiLock.
func (a *lockActor) keys() (keys []string) {
	if a.key.Composition != request.SeveralLocks {
		return []string{a.rt.cfg.KeyPrefix + a.key.Name}
	}
	for _, each := range a.members {
		keys = append(keys, each.System.Rules().KeyPrefix+each.Name)
	}
	return keys
}

// listBatch is the number of lock actors that are asked before their answers are read.
const listBatch = 256

// Locks returns the state of every lock that the system holds or waits for, and of every semaphore and latch that it
// waits for, as far as it is known without Redis. It asks each lock actor in turn. complete is false if ctx ends first.
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
	for a := range r.locks.All {
		if !a.gate.Enter() { // the actor is leaving, and was idle
			continue
		}
		call := &request.Call{Op: request.OpList, Kind: a.storedAs, Name: a.key.Name}
		asked = append(asked, call)
		a.process.SendUserMessage(a.pid, call)
		if len(asked) == listBatch && !read() {
			return nil, false
		}
	}
	return all, read()
}

// local returns the state of the lock that is known without Redis.
func (a *lockActor) local() status.Lock {
	return status.Lock{Machine: a.machine, Label: a.observer.Label(), Several: len(a.members) > 0, Now: a.rt.Now()}
}

// show updates the state of the lock that other goroutines read.
func (a *lockActor) show() {
	now := a.machine.Summary()
	if until := int64(now.LeaseUntil); a.until.Load() != until {
		a.until.Store(until)
	}
	if now.Holds == 0 {
		now.Term = 0
	}
	a.shown.Set(now.Term, now.Waiters, a.now)
}

// ownRecord returns the record of the system with its notes; nil if the system keeps no record.
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
	for a := range r.locks.All {
		if kinds.Of(a.storedAs).IsLock() && !work.Add(a.keys(), &a.shown, r.Now()) {
			return
		}
	}
}
