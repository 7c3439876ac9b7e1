package lock_test

import (
	"cmp"
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// The clients of a process, and the answers that they get.

// owner returns the owner of a term in Redis.
func (w *world) owner(i int, term uint64) redismodel.Owner {
	return redismodel.Owner{Client: w.processes[i].client, Term: term}
}

// ask sends a request to the lock.
func (w *world) ask(i int, r request) {
	p := &w.processes[i]
	p.ids++
	r.id, r.at = p.ids, w.now
	if w.choices != nil && w.now < p.pausedUntil {
		w.send(message{kind: delayedRequest, p: i, request: r, at: p.pausedUntil})
		return
	}
	w.perform(i, r)
}

func (w *world) perform(i int, r request) {
	p := &w.processes[i]
	if p.dead {
		return
	}
	w.begin(i)
	r.term = p.terms
	if (r.what == release || r.what == extend) && r.owner != 0 { // the present hold of its owner, even if the grant is not delivered yet
		if k := slices.IndexFunc(p.holds, func(h hold) bool { return h.req.Owner == r.owner }); k >= 0 {
			r.hold = p.holds[k].id
		}
	}
	if h := w.holdByID(i, r.hold); h != nil && r.what == extend {
		length := cmp.Or(r.d, w.config.Watchdog)
		if end := w.now + length - machine.Margin(length); h.shortest == 0 || end < h.shortest {
			h.shortest = end
		}
	}
	switch r.what {
	case suspect:
	case closes:
		p.closed = true
	case ownerDies: // its requests get no answer
		p.requests = slices.DeleteFunc(p.requests, func(other request) bool { return other.what == acquire && other.req.Owner == r.owner })
		for k := range p.holds {
			p.holds[k].dead = p.holds[k].dead || p.holds[k].req.Owner == r.owner
		}
	default:
		p.requests = append(p.requests, r)
	}
	w.event(i, r.String(), func(l *lock.Lock) {
		switch r.what {
		case acquire:
			req := r.req
			req.ID, req.Ref = r.id, r.ref
			l.Acquire(w.now, req)
		case release:
			id := r.hold
			if r.owner != 0 {
				id = 0
			}
			l.Release(w.now, machine.Release{ID: id, Owner: r.owner, Mode: r.mode, Ref: r.ref})
		case cancel:
			l.Cancel(w.now, r.hold, r.owner, r.ref)
		case extend:
			l.Extend(w.now, r.hold, r.owner, r.d, r.ref)
		case ensure:
			l.Ensure(w.now, r.hold, r.d, r.ref)
		case forceRelease:
			l.ForceRelease(w.now, r.mode, r.owners, r.ref)
		case suspect:
			l.Suspect(w.now)
		case closes:
			l.Close(w.now)
		case ownerDies:
			l.OwnerGone(w.now, r.owner)
		}
	})
}

// releaseHold releases a hold once, in the given mode if it is held in that, else in the other.
func (w *world) releaseHold(i int, h hold, byOwner bool, mode machine.Mode) {
	if h.dead {
		return
	}
	if h.counts.in(mode) == 0 {
		mode = machine.Shared - mode
	}
	r := request{ref: ref{what: release, caller: h.caller}, hold: h.id, mode: mode}
	if byOwner {
		r.owner = h.req.Owner
	}
	w.ask(i, r)
}

// releaseAsPlanned carries out a plannedRelease.
func (w *world) releaseAsPlanned(m message) {
	h := w.holdByID(m.p, m.request.id)
	if h == nil {
		return
	}
	if !m.repeat || w.now >= w.processes[m.p].pausedUntil { // a paused process does not collect repeated requests
		w.releaseHold(m.p, *h, !m.repeat && w.choices.pick(2) == 1, w.anyMode())
	}
	if m.at = w.now + 10*ms; m.repeat {
		w.send(m)
	}
}

// anyMode is the shared mode now and then, if the lock can be shared.
func (w *world) anyMode() machine.Mode {
	if w.features.Shares && w.choices.pick(3) == 1 {
		return machine.Shared
	}
	return machine.Exclusive
}

// planRelease draws the releases of a new hold: one, two, as many as it needs, or none.
func (w *world) planRelease(i int, h request) {
	if w.choices == nil {
		return
	}
	m := message{kind: plannedRelease, p: i, request: h, at: w.now + oneOf(w.choices, ms, 0, 20*ms, 300*ms, 3*sec)}
	switch w.choices.pick(4) {
	case 1:
		w.send(m)
		w.send(m)
	case 2:
		m.repeat = true
		fallthrough
	case 0:
		w.send(m)
	}
}

// endProcess kills a process.
func (w *world) endProcess(i int) {
	p := &w.processes[i]
	p.dead, p.requests, p.holds = true, nil, nil
	w.redis.Hangup(p.client)
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		return m.p == i && m.kind >= reply && m.kind <= plannedRelease && m.kind != unsubscribing
	})
}

// failForGood ends a lock as its actor does when it fails for good: all requests are answered, and the cleanup is sent
// after the earlier commands.
func (w *world) failForGood(i int) {
	p := &w.processes[i]
	w.checkOutstanding(i)
	cleanup := p.lock.CleanupCommands(w.now)
	w.endProcess(i)
	for _, c := range cleanup {
		w.send(message{kind: command, p: i, command: c, at: w.now + 10*sec})
	}
	p.lock, p.tokens = lock.New(&w.config, p.features), nil
}

// holdByID returns a hold of a process, nil if there is none.
func (w *world) holdByID(i int, id uint64) *hold {
	holds := w.processes[i].holds
	if k := slices.IndexFunc(holds, func(h hold) bool { return h.id == id }); k >= 0 {
		return &holds[k]
	}
	return nil
}

// releasing reports whether a release of that hold is pending.
func (p *process) releasing(id uint64) bool {
	return slices.ContainsFunc(p.requests, func(r request) bool { return r.what == release && r.hold == id })
}

// answered delivers an answer to its request, and checks it.
func (w *world) answered(i int, to ref, a machine.Answer) {
	p := &w.processes[i]
	w.logf("p%d: %s %d is answered: %s", i, actions[to.what].name, to.id, answerSentence(a))
	k := slices.IndexFunc(p.requests, func(r request) bool { return r.id == to.id })
	if k < 0 {
		if a.Kind == machine.Granted || w.counted[death] == 0 {
			w.violated("p%d: %v is answered %v twice, or its owner is dead", i, to, a.Kind)
		}
		return // it was refused before its owner died
	}
	r := p.requests[k]
	p.requests = slices.Delete(p.requests, k, k+1)
	want := [...][2]machine.AnswerKind{
		acquire: {machine.Granted, machine.NotGranted}, release: {machine.Freed, machine.NotFreed}, cancel: {machine.Withdrawn},
		ensure: {machine.Ensured, machine.NotDone}, extend: {machine.Extended, machine.NotDone}, forceRelease: {machine.ForceReleased, machine.NotDone},
	}[r.what]
	if a.Kind != want[0] && a.Kind != want[1] {
		w.violated("p%d: %v cannot be answered by %v", i, r, a.Kind)
	}
	if a.Kind == want[1] && (a.Reason == 0 || a.Detail == "") {
		w.violated("p%d: %v is refused without a reason: %+v", i, r, a)
	}
	switch a.Kind {
	case machine.Granted:
		w.checkGranted(i, r, a)
	case machine.NotGranted:
		w.checkRefused(i, r, a)
	case machine.Freed:
		w.checkFreed(i, r, a)
	case machine.NotFreed:
		w.checkUnconfirmed(i, r, a)
	case machine.Ensured:
		w.checkEnsured(i, r, a)
	case machine.Extended:
		w.checkExtended(i, r, a)
	}
}

// notifiedLost delivers a notice of a loss, and checks that a present holder gets it, and only once.
func (w *world) notifiedLost(i int, id uint64, a machine.Answer) {
	w.logf("p%d: hold %d is lost: %v, %s", i, id, a.Reason, a.Detail)
	h := w.holdByID(i, id)
	if h == nil || h.lost {
		w.violated("p%d: the loss of hold %d is notified, but the holders are %v", i, id, w.processes[i].holds)
	}
	if a.Reason == 0 || a.Detail == "" {
		w.violated("p%d: %v is lost without a reason", i, h)
	}
	keyLost := w.any(deleted, forced, restart)
	faulty := w.any(slow, lost, late, onePart, loading, rejected, frozen, paused, lateTimer, crash)
	if (a.Reason == machine.Gone || a.Reason == machine.Taken) && !keyLost ||
		a.Reason == machine.Expired && h.req.Lease == 0 && h.shortest == 0 && !faulty {
		w.violated("p%d: %v is lost because of %v", i, h, a.Reason)
	}
	if w.now < max(h.good, h.ensured) && (a.Reason == machine.Expired || a.Reason == machine.MaxHold) {
		w.violated("p%d: %v is over, and was seen to be valid until %v, %v", i, h, h.good, h.ensured)
	}
	h.lost = true
}

// holdEnded removes a hold.
func (w *world) holdEnded(i int, id uint64) {
	p, h := &w.processes[i], w.holdByID(i, id)
	if h == nil {
		w.violated("p%d: hold %d is over, but the holders are %v", i, id, p.holds)
	}
	p.ended = append(p.ended, ended{id, w.now, h.keepUntil, h.lost})
	p.holds = slices.DeleteFunc(p.holds, func(h hold) bool { return h.id == id })
}

// endOf returns how a hold ended, if it has.
func (p *process) endOf(id uint64) (ended, bool) {
	if k := slices.IndexFunc(p.ended, func(e ended) bool { return e.id == id }); k >= 0 {
		return p.ended[k], true
	}
	return ended{}, false
}
