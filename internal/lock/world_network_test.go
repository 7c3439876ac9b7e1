package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redismodel"
)

// message is something that is on its way, or due at some time.
//
// Every command is carried out at most once, as TCP has it; but it may be carried out after
// it was given up, and in another order than it was sent.
type message struct {
	kind     messageKind
	p        int // whose, or which stranger's
	at       lock.Instant
	command  lock.Command
	result   lock.Result
	term     uint64 // of a channel
	transfer lock.Transfer
	request  request
	repeat   bool // of a plan: until the hold is over
}

type messageKind byte

const (
	command messageKind = iota
	lateCommand
	reply
	signal
	subscribing
	subscribed
	unsubscribing
	transferred
	delayedRequest // of a client whose process is paused
	plannedRelease // to give a hold back
	foreignStep
)

func (m message) String() string {
	switch m.kind {
	case command, lateCommand, reply:
		c := m.command
		text := fmt.Sprintf("p%d's #%d %s term %d count %d+%d lease %v", m.p, c.Seq, commandNames[c.Kind], c.Term, c.Count, c.Shared, c.Lease)
		if c.Kind == lock.SyncQueue {
			text = fmt.Sprintf("p%d's #%d sync %v, take %v, release %d, top %d", m.p, c.Seq, c.Entries, c.Take, c.Term, c.Top)
		}
		if m.kind == reply {
			text = fmt.Sprintf("reply %+v to %s", m.result, text)
		}
		return text
	}
	return fmt.Sprintf("%s of %d", [...]string{signal: "message", subscribing: "subscription", subscribed: "confirmation", unsubscribing: "end of the subscription", transferred: "transfer",
		delayedRequest: "wish", plannedRelease: "plan", foreignStep: "stranger"}[m.kind], m.p)
}

// fate is what becomes of a message.
type fate byte

const (
	fine fate = iota
	requestLost
	replyLost
	isLate
	firstPart // alone
	secondPart
	isLoading
	isRejected
	crashBefore // the lock actor is done with it, so that it comes again, behind the others
	crashAfter  // that, with effects that are left to be carried out
	fates
)

var fateNames = [...]string{
	"", ", lost", ", whose reply gets lost", ", which will be late", ", at the first part alone", ", at the second part alone", ", not now", ", never",
	", over which the lock actor crashes", ", after which the lock actor crashes",
}

// fault is what a fate of a message counts as, if it may meet it.
func (f fate) fault(m *message, kind *lock.Kind) (fault, bool) {
	switch {
	case f == requestLost && (m.kind == signal || m.kind == subscribing || m.kind == transferred):
		return lostMessage, true
	case m.kind == reply:
		return crash, f >= crashBefore
	case m.kind != command || f >= crashBefore:
		return 0, false
	}
	parts := kind.Parts && (m.command.Kind != lock.Acquire || m.command.Count != 1)
	return [...]fault{requestLost: lost, replyLost: lost, isLate: late, firstPart: onePart, secondPart: onePart, isLoading: loading, isRejected: rejected}[f],
		f != firstPart && f != secondPart || parts
}

// faultOf is what a fate of a message counts as, if it may meet it.
func (w *world) faultOf(m *message, f fate) (fault, bool) {
	kind := &w.kind
	if m.kind <= reply {
		kind = w.processes[m.p].kind
	}
	return f.fault(m, kind)
}

// send puts a message on its way.
func (w *world) send(m message) { w.net = append(w.net, m) }

// take takes it out again.
func (w *world) take(k int) message {
	m := w.net[k]
	w.net = slices.Delete(w.net, k, k+1)
	return m
}

// latency is how long a message takes on its way.
func (w *world) latency() time.Duration {
	if !w.can(slow) {
		return oneOf(w.tape, ms, ms/5)
	}
	d := oneOf(w.tape, ms, ms/5, 5*ms, 40*ms, 200*ms, 600*ms, 1500*ms)
	if d > 5*ms {
		w.counted[slow]++
	}
	return d
}

var (
	errLoading = errors.New("LOADING Redis is loading the dataset in memory")
	errTimeout = errors.New("i/o timeout")
	errNoPerm  = errors.New("NOPERM this user has no permissions")
	errFull    = errors.New("OOM command not allowed")
)

// deliver lets a message meet its fate.
func (w *world) deliver(m message, f fate) {
	w.logf("%v%s", m, fateNames[f])
	if fault, ok := w.faultOf(&m, f); ok && f != fine {
		w.counted[fault]++
	}
	if m.kind == foreignStep {
		w.stepForeign(m.p, m.term)
		return
	}
	p := &w.processes[m.p]
	switch m.kind {
	case command, lateCommand:
		w.arrive(m, f)
	case reply:
		w.receiveReply(m, f)
	case signal:
		if f == fine {
			w.event(m.p, "signal", func(l *lock.Lock) { l.Signal(w.now) })
		}
	case transferred:
		if f == fine {
			w.event(m.p, fmt.Sprintf("transferred to term %d by #%d", m.transfer.Term, m.transfer.Seq), func(l *lock.Lock) { l.Transferred(w.now, m.transfer) })
		}
	case subscribing:
		if f == fine && !p.dead {
			w.redis.Subscribe(p.client, redismodel.TurnChannel(p.client))
			w.redis.Subscribe(p.client, redismodel.Waiters)
			w.redis.Subscribe(p.client, w.channel(m.p, m.term))
			w.send(message{kind: subscribed, p: m.p, term: m.term, at: w.now + w.latency()})
		}
	case subscribed:
		p.reachable = true
		w.event(m.p, "subscribed", func(l *lock.Lock) { l.Subscribed(w.now, m.term) })
	case unsubscribing:
		w.redis.Unsubscribe(p.client, redismodel.Waiters)
		w.redis.Unsubscribe(p.client, w.channel(m.p, m.term))
	case delayedRequest:
		w.perform(m.p, m.request)
	case plannedRelease:
		w.releaseAsPlanned(m)
	}
}

// arrive is what becomes of a command at Redis.
func (w *world) arrive(m message, f fate) {
	p := &w.processes[m.p]
	if f != fine {
		w.factFor(w.owner(m.p, m.command.Term)).countUncertain = true
	}
	answer := lock.Result{Outcome: lock.Failed, Err: errTimeout, Transient: true, Unsure: true}
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
		if !asks {
			w.runCommand(m.p, m.command, -1)
		}
	case firstPart, secondPart:
		w.runCommand(m.p, m.command, int(f-firstPart))
	case isLate:
		if asks {
			break // a look that comes late is all that there is
		}
		after := m
		after.kind, after.at = lateCommand, w.now+oneOf(w.tape, 0, 100*ms, 800*ms, 2*sec, 5*sec)
		w.send(after)
		if w.tape == nil && m.command.Kind == lock.Renew {
			return // its reply counts when it comes
		}
	case isLoading:
		answer.Err, answer.Unsure, at = errLoading, false, w.now+w.latency()
	case isRejected:
		answer.Err, answer.Transient, answer.Unsure, at = errNoPerm, false, false, w.now+w.latency()
	}
	switch {
	case p.dead, m.kind == lateCommand && w.tape == nil && m.command.Kind != lock.Renew:
		return
	case at != never:
	case w.tape.pick(2) == 1:
		return // a caller that gave up says so at the deadline, or not at all
	default:
		at = m.command.Deadline
	}
	w.send(message{kind: reply, p: m.p, command: m.command, result: answer, at: at})
}

// name has a forced release that names no owners ask who holds the lock. Then it comes again with those, and
// with the owner of its term.
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
	case m.at > m.command.Deadline: // it is not sent any more
		m.kind, m.result = reply, lock.Result{Outcome: lock.Failed, Err: errTimeout, Transient: true}
		w.send(m)
	default:
		w.send(m)
	}
}

// seen are the holders that an operator sees who asks a process for a forced release.
func (w *world) seenHolders(i int) (owners lock.Owners) {
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

// hear brings a reply to its lock, whose actor may crash over it.
func (w *world) receiveReply(m message, f fate) {
	p := &w.processes[m.p]
	replied := func(l *lock.Lock) { l.Replied(w.now, m.command.Seq, m.result) }
	if w.now > m.command.Deadline {
		w.factFor(w.owner(m.p, m.command.Term)).countUncertain = true
		w.hasLateCommand = true
	}
	switch {
	case p.dead:
	case f == crashBefore:
		w.begin(m.p)
		w.onCopy(m.p, replied)
		w.send(m)
	case f == crashAfter:
		w.begin(m.p)
		replied(&p.lock)
		w.carryOut(m.p, 1)
		p.pausedUntil = max(p.pausedUntil, w.now+ms)
		w.setTimer(m.p)
		if p.stalled && w.tape != nil {
			p.wakeAt = w.now
		}
	default:
		w.event(m.p, "reply", replied)
	}
}

// subscribe gets a process the messages of the lock's channel.
func (w *world) subscribe(i int, after time.Duration) {
	p := &w.processes[i]
	p.subscriptionAt = max(p.subscriptionAt, w.now+after+w.latency())
	w.send(message{kind: subscribing, p: i, term: p.channel, at: p.subscriptionAt})
}

func (w *world) unsubscribe(i int, term uint64) {
	p := &w.processes[i]
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	m := message{kind: unsubscribing, p: i, term: term, at: p.subscriptionAt}
	if w.tape != nil {
		w.send(m)
		return
	}
	w.net = slices.DeleteFunc(w.net, func(m message) bool { return m.p == i && m.kind >= signal && m.kind <= subscribed })
	w.deliver(m, fine)
}

// channel is what a process listens to: in a fair lock, every waiter has its own.
func (w *world) channel(i int, term uint64) redismodel.Owner {
	if w.kind.Queued {
		return w.owner(i, term)
	}
	return redismodel.Owner{}
}

// tell delivers what Redis has published.
func (w *world) publish(told []redismodel.Publication) {
	for _, t := range told {
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
				hears := p.client == c && !p.dead && (p.part < 0 || p.part == t.Part)
				if hears && (w.tape != nil || w.underWay(i, signal) < 2) {
					w.send(message{kind: signal, p: i, at: w.now + w.latency()})
				}
			}
		}
	}
}

// underWay counts messages of a process.
func (w *world) underWay(i int, kinds ...messageKind) (n int) {
	for k := range w.net {
		if w.net[k].p == i && slices.Contains(kinds, w.net[k].kind) {
			n++
		}
	}
	return n
}

// run has Redis carry out a command, or one part of the lock alone.
func (w *world) runCommand(i int, c lock.Command, part int) lock.Result {
	w.redis.At(w.now)
	w.watch(i, c)
	owner := w.owner(i, c.Term)
	if grows := c.Kind == lock.Acquire || c.Kind == lock.Yield || c.Kind == lock.Release && c.Count+c.Shared > 0 ||
		c.Kind == lock.SyncQueue && c.Term == 0 && len(c.Entries) > 0; grows && w.now < w.fullUntil {
		// A real one refuses less: nothing behind a script's first write.
		w.factFor(owner).countRefused = c.Kind != lock.SyncQueue
		return lock.Result{Outcome: lock.Failed, Err: errFull, Transient: true}
	}
	if c.Kind == lock.Acquire || c.Kind == lock.Release {
		w.factFor(owner).countRefused = false
	}
	before := w.redis
	if part < 0 {
		part = w.processes[i].part
	}
	result, told := w.redis.Run(owner.Client, part, c)
	if c.Kind == lock.ForceRelease {
		w.noteLostKeys(&before)
		w.checkForced(&before, c)
	}
	var top uint64
	if c.Kind == lock.SyncQueue {
		top = c.Top
	}
	w.watchQueue(&before, func(o redismodel.Owner) bool { return o.Client == owner.Client && o.Term <= top })
	w.checkOvertaking(&before)
	w.publish(told)
	return result
}

// watch takes note of a command that is carried out.
func (w *world) watch(i int, c lock.Command) {
	if c.Seq == 0 {
		return // of a lock that was given up
	}
	p, tooLate := &w.processes[i], w.now > c.Deadline
	w.hasLateCommand = w.hasLateCommand || tooLate
	f := w.factFor(w.owner(i, c.Term))
	f.countUncertain = f.countUncertain || c.Seq < f.ranSeq
	f.late = f.late || tooLate || c.Seq < f.ranSeq
	f.ranSeq = max(f.ranSeq, c.Seq)
	if c.Kind != lock.SyncQueue {
		return
	}
	stale := tooLate || c.Seq < p.ranSync
	for _, e := range c.Entries {
		f := w.factFor(w.owner(i, e.Term))
		f.late = f.late || stale || c.Seq < f.ranSeq
		f.mayReappear, f.countUncertain = f.mayReappear || stale, f.countUncertain || stale
	}
	p.ranSync = max(p.ranSync, c.Seq)
}

// robbed takes note of those who have lost their key.
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

// restart is the end of Redis, and another one in its place that is empty. Whoever wants
// messages subscribes again.
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

func (w *world) reconnect(after time.Duration) {
	for i := range w.processes {
		if p := &w.processes[i]; p.listening && !p.dead && (w.tape != nil || w.underWay(i, subscribing) == 0) {
			w.subscribe(i, after)
		}
	}
}
