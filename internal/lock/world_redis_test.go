package lock_test

import (
	"errors"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// Redis in a world: commands that arrive, and messages that it publishes.

var (
	errReplicas = errors.New("0 of the 1 replicas have it")
	errLoading  = errors.New("LOADING Redis is loading the dataset in memory")
	errTimeout  = errors.New("i/o timeout")
	errNoPerm   = errors.New("NOPERM this user has no permissions")
	errFull     = errors.New("OOM command not allowed")
)

// arrive handles a command at Redis.
func (w *world) arrive(m message, f fate) {
	p := &w.processes[m.p]
	if f != fine {
		w.factFor(w.owner(m.p, m.command.Term)).countUncertain = true
	}
	answer := lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: errTimeout, Transient: true, Unsure: true}}
	at := never
	asks := m.command.Kind == lock.ForceRelease && m.command.Owners == nil
	if asks && (f == fine || f == firstPart || f == secondPart) {
		w.nameHolders(m)
		return
	}
	switch f {
	case fine:
		answer, at = w.runCommand(m.p, m.command, -1), w.now+w.latency()
	case replyLost:
		if asks {
			break
		}
		result := w.runCommand(m.p, m.command, -1)
		if w.config.Replicated && w.choices.pick(2) == 1 {
			answer, at = unconfirmed(m.command, result), max(w.now, w.now+(m.command.Deadline-w.now)*3/4)
		}
	case firstPart, secondPart:
		w.runCommand(m.p, m.command, int(f-firstPart))
	case isLate:
		if asks {
			break // only the question which owners hold the lock comes late
		}
		after := m
		for _, e := range m.command.Entries {
			w.factFor(w.owner(m.p, e.Term)).mayReappear = true
		}
		after.kind, after.at = lateCommand, w.now+oneOf(w.choices, 0, 100*ms, 800*ms, 2*sec, 5*sec)
		w.send(after)
		if w.choices == nil && m.command.Kind == lock.Renew {
			return // its late reply counts
		}
	case isLoading:
		answer.Err, answer.Unsure, at = errLoading, false, w.now+w.latency()
	case isRejected:
		answer.Err, answer.Transient, answer.Unsure, at = errNoPerm, false, false, w.now+w.latency()
	}
	switch {
	case p.dead, m.kind == lateCommand && w.choices == nil && m.command.Kind != lock.Renew:
		return
	case at != never:
	case w.choices.pick(2) == 1:
		return // the timeout is reported at the deadline, or not at all
	default:
		at = m.command.Deadline
	}
	w.send(message{kind: reply, p: m.p, command: m.command, result: answer, at: at})
}

// unconfirmed is the reply to a command whose lease too few replicas have; other commands are not affected.
func unconfirmed(c lock.Command, r lock.Result) lock.Result {
	leases := c.Kind == lock.Acquire || c.Kind == lock.Yield || c.Kind == lock.Renew || c.Kind == lock.SyncQueue && c.Take
	if !leases || r.Outcome != lock.Renewed && (r.Outcome != lock.Done || c.Kind == lock.Yield) {
		return r
	}
	return lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: errReplicas, Transient: true, Unsure: true, Unconfirmed: true}}
}

// nameHolders adds the present holders, and the owner of its term, to a forced release without owners, and sends
// it again.
func (w *world) nameHolders(m message) {
	w.redis.At(w.now)
	m.command.Owners = []string{}
	add := func(o redismodel.Owner) {
		if name := w.setup.Name(o); !slices.Contains(m.command.Owners, name) {
			m.command.Owners = append(m.command.Owners, name)
		}
	}
	for i := range w.redis.Parts() {
		for _, h := range w.redis.Part(i).Holders {
			add(h.Owner)
		}
	}
	if m.command.Term != 0 {
		add(w.owner(m.p, m.command.Term))
	}
	m.at = w.now + 2*w.latency()
	switch p := &w.processes[m.p]; {
	case p.dead:
	case m.at > m.command.Deadline: // it is too late to send it
		m.kind, m.result = reply, lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: errTimeout, Transient: true}}
		w.send(m)
	default:
		w.send(m)
	}
}

// seenHolders returns the holders that an operator sees before a forced release.
func (w *world) seenHolders(i int) (owners machine.Owners) {
	w.redis.At(w.now)
	for part := range w.redis.Parts() {
		for _, h := range w.redis.Part(part).Holders {
			owners.Fields = append(owners.Fields, w.setup.Name(h.Owner))
			if h.Client == w.processes[i].client {
				owners.Term = h.Term
			}
		}
	}
	return owners
}

// runCommand carries out a command in Redis, at one part of the lock or at all of them (-1).
func (w *world) runCommand(i int, c lock.Command, part int) lock.Result {
	w.redis.At(w.now)
	w.watch(i, c)
	owner := w.owner(i, c.Term)
	if grows := c.Kind == lock.Acquire || c.Kind == lock.Yield || c.Kind == lock.Release && c.Count+c.Shared > 0 ||
		c.Kind == lock.SyncQueue && c.Term == 0 && len(c.Entries) > 0; grows && w.now < w.fullUntil {
		// A real server refuses less: nothing after a script's first write.
		w.factFor(owner).countRefused = c.Kind != lock.SyncQueue
		return lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: errFull, Transient: true}}
	}
	if c.Kind == lock.Acquire || c.Kind == lock.Release {
		w.factFor(owner).countRefused = false
	}
	before := w.redis
	if part < 0 {
		part = w.processes[i].part
	}
	result, published := w.redis.Run(owner.Client, part, c)
	if c.Kind == lock.ForceRelease {
		w.noteLostKeys(&before)
		w.checkForced(&before, c)
	}
	w.checkNotHidden(i, c, &before)
	var top uint64
	if c.Kind == lock.SyncQueue {
		top = c.Top
	}
	w.watchQueue(&before, func(o redismodel.Owner) bool { return o.Client == owner.Client && o.Term <= top })
	w.checkOvertaking(&before)
	w.publish(published)
	return result
}

// watch records a command that is carried out.
func (w *world) watch(i int, c lock.Command) {
	if c.Seq == 0 {
		return // a cleanup after the lock actor has failed for good
	}
	p, tooLate := &w.processes[i], w.now > c.Deadline
	w.hasLateCommand = w.hasLateCommand || tooLate
	f := w.factFor(w.owner(i, c.Term))
	f.countUncertain = f.countUncertain || c.Seq < f.ranSeq
	f.late = f.late || tooLate || c.Seq < f.ranSeq
	f.ranSeq = max(f.ranSeq, c.Seq)
	if c.Kind == lock.Yield {
		w.factFor(w.owner(i, c.Entry.Term)).late = f.late
	}
	if c.Kind != lock.SyncQueue {
		return
	}
	stale := tooLate || c.Seq < p.ranSync
	for _, e := range c.Entries {
		f := w.factFor(w.owner(i, e.Term))
		f.late = f.late || stale || c.Seq < f.ranSeq
		f.mayReappear, f.countUncertain = f.mayReappear || tooLate, f.countUncertain || stale
	}
	p.ranSync = max(p.ranSync, c.Seq)
}

// noteLostKeys records the owners that have lost their key.
func (w *world) noteLostKeys(before *redismodel.Server) {
	for i := range w.redis.Parts() {
		for _, h := range before.Part(i).Holders {
			if w.redis.Part(i).Of(h.Owner) == (redismodel.Counts{}) {
				f := w.factFor(h.Owner)
				f.keyLost, f.keyLostAt = true, w.now
			}
		}
	}
}

// restart replaces Redis by an empty one. Processes that listen subscribe again.
func (w *world) restart(after time.Duration) {
	before := w.redis
	w.redis.Restart()
	w.noteLostKeys(&before)
	for _, waiter := range before.Part(0).Queue {
		w.factFor(waiter.Owner).exempt = true
	}
	w.tokensLost = true
	w.reconnect(after)
}

// listenForAsks subscribes a process in which leases may linger.
func (w *world) listenForAsks(p *process) {
	if w.config.Linger > 0 && !p.dead {
		w.redis.Subscribe(p.client, redismodel.AskedChannel(p.client))
	}
}

func (w *world) reconnect(after time.Duration) {
	for i := range w.processes {
		w.listenForAsks(&w.processes[i])
		if p := &w.processes[i]; p.listening && !p.dead && (w.choices != nil || w.underWay(i, subscribing) == 0) {
			w.subscribe(i, after)
		}
	}
}

// publish sends the messages that Redis has published.
func (w *world) publish(all []redismodel.Publication) {
	for _, t := range all {
		for _, c := range w.redis.Hearers(t) {
			if c >= foreignClients {
				w.send(message{kind: foreignStep, p: int(c - foreignClients), at: w.now + w.latency()})
				continue
			}
			for i := range w.processes {
				p := &w.processes[i]
				if t.Transfer.Term != 0 {
					if p.client == c && !p.dead {
						w.send(message{kind: transferred, p: i, transfer: t.Transfer, at: w.now + w.latency()})
					}
					continue
				}
				receives := p.client == c && !p.dead && (p.part < 0 || p.part == t.Part)
				if receives && (w.choices != nil || w.underWay(i, signal) < 2) {
					w.send(message{kind: signal, p: i, at: w.now + w.latency()})
				}
			}
		}
	}
}
