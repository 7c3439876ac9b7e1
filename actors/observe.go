package actors

import (
	"context"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// What is measured, traced and logged is in package observe. Here are the snapshots that it gets.

func (r *Runtime) newObserver() *observe.Observer {
	return observe.New(observe.Config{
		Host: r.host, Meter: r.cfg.Meter, Tracer: r.cfg.Tracer, LongWait: r.cfg.LongWait, LongHold: r.cfg.LongHold,
		Now: r.Now, Load: r.load,
	})
}

// load counts the requests that wait and the locks that are held.
func (r *Runtime) load(ctx context.Context) (waiting int64, held int, ok bool) {
	states, complete := r.Locks(ctx)
	for _, each := range states {
		waiting += each.Waiters
		if each.HeldHere {
			held++
		}
	}
	return waiting, held, complete
}

// watch has the observer notified of calls to Redis.
func (r *Runtime) watch() (w redisclient.Watch) {
	o := r.observer
	w.Reached = func(script string, err *redisio.Error) {
		if end := endOf(err); err == nil {
			o.Reached(script, end, nil)
		} else {
			o.Reached(script, end, err)
		}
	}
	if !o.Measures() {
		return w
	}
	w.Called = func(script string, took time.Duration, err *redisio.Error) { o.Called(script, took, endOf(err)) }
	w.Renewed = func(result string, err *redisio.Error) { o.Renewed(result, endOf(err)) }
	w.Reconnected = o.Reconnected
	return w
}

func endOf(err *redisio.Error) observe.CallEnd {
	switch {
	case err == nil:
		return observe.Served
	case err.Transient:
		return observe.Failed
	}
	return observe.Rejected
}

// Standbys counts requests that begin to wait to lead, or cease to.
func (r *Runtime) Standbys(kind messages.Kind, n int64) { r.observer.Standbys(kind, n) }

// Traces reports whether spans are made.
func (r *Runtime) Traces() bool { return r.observer.Traces() }

// about is what is observed of a request after its answer, when the Call may be in use again.
func (s *lockState) about(call *request.Call) observe.Request {
	of := observe.Request{Kind: call.LockKind(), Leads: call.Leads, Since: call.From}
	if s.rt.Traces() {
		of.Parent = call.Requester().Parent(call)
	}
	return of
}

// hold is what a line about a hold says.
func (s *lockState) hold(call *request.Call, term uint64, now machine.Instant) observe.Hold {
	h := observe.Hold{Kind: call.LockKind(), Ref: call, Client: s.client, Term: term, Age: now - call.From}
	if w := ownerOf(call); w != nil {
		h.Holder = w.pid
	}
	return h
}

// observeStep ends the measuring of a step.
func (s *lockState) observeStep() {
	if !s.rt.observer.Measures() {
		return
	}
	kind := s.format
	held, waiting, first := s.lock.Load()
	if first != nil {
		kind = first.(*request.Call).LockKind()
	}
	s.observer.StepEnded(held, waiting, kind)
}

// observeReply notes for the traces what Redis has said to a try.
func (s *lockState) observeReply(r lock.Result) {
	switch r.Outcome {
	case lock.Refused:
		s.observer.RepliedHeld(r.Holder)
	case lock.Failed:
		s.observer.RepliedFailed(r.Err)
	}
}
