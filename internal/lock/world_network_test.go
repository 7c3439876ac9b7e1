package lock_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
)

// message is a message on its way, or an event that is due at a time.
//
// Every command is carried out at most once, as with TCP. But it may be carried out after its deadline, and the
// order of commands may change.
type message struct {
	kind     messageKind
	p        int // index of the process, or of the foreign client
	at       machine.Instant
	command  lock.Command
	result   lock.Result
	term     uint64 // term of a channel, or step of a foreign client
	transfer machine.Transfer
	request  request
	repeat   bool // of a plannedRelease: until the hold is over
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
	delayedRequest // a request to a process that is paused
	plannedRelease
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
	return fmt.Sprintf("%s of %d", [...]string{
		signal: "message", subscribing: "subscription", subscribed: "confirmation", transferred: "transfer",
		unsubscribing:  "end of the subscription",
		delayedRequest: "delayed request", plannedRelease: "planned release", foreignStep: "step of foreign client",
	}[m.kind], m.p)
}

// fate is the fault, or none, that a message meets.
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
	crashBefore // the lock actor crashes before it keeps the result, and the reply comes again after the others
	crashAfter  // the lock actor crashes after the first effect
	fates
)

var fateNames = [...]string{
	"", ", lost", ", whose reply gets lost", ", which will be late", ", at the first part alone", ", at the second part alone", ", refused for now",
	", refused for good", ", before which the lock actor crashes", ", after which the lock actor crashes",
}

// fault returns the fault that a fate counts as, and whether the message may meet it.
func (f fate) fault(m *message, features *lock.Features) (fault, bool) {
	switch {
	case f == requestLost && (m.kind == signal || m.kind == subscribing || m.kind == transferred):
		return lostMessage, true
	case m.kind == reply:
		return crash, f >= crashBefore
	case m.kind != command || f >= crashBefore:
		return 0, false
	}
	parts := features.Parts && (m.command.Kind != lock.Acquire || m.command.Count != 1)
	return [...]fault{requestLost: lost, replyLost: lost, isLate: late, firstPart: onePart, secondPart: onePart, isLoading: loading, isRejected: rejected}[f],
		f != firstPart && f != secondPart || parts
}

// faultOf is fault, with the features of the message's process.
func (w *world) faultOf(m *message, f fate) (fault, bool) {
	features := &w.features
	if m.kind <= reply {
		features = w.processes[m.p].features
	}
	return f.fault(m, features)
}

// send puts a message on its way.
func (w *world) send(m message) { w.net = append(w.net, m) }

// take removes a message.
func (w *world) take(k int) message {
	m := w.net[k]
	w.net = slices.Delete(w.net, k, k+1)
	return m
}

// latency draws the delivery time of a message.
func (w *world) latency() time.Duration {
	if !w.can(slow) {
		return oneOf(w.choices, ms, ms/5)
	}
	d := oneOf(w.choices, ms, ms/5, 5*ms, 40*ms, 200*ms, 600*ms, 1500*ms)
	if d > 5*ms {
		w.counted[slow]++
	}
	return d
}

// deliver delivers a message, or loses or delays it as its fate says.
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
			w.event(m.p, fmt.Sprintf("transferred to term %d by #%d", m.transfer.Term, m.transfer.Seq), func(l *lock.Lock) { receive(l, w.now, m.transfer) })
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

// receiveReply delivers a reply to its lock. The lock actor may crash on it.
func (w *world) receiveReply(m message, f fate) {
	p := &w.processes[m.p]
	replied := func(l *lock.Lock) { l.Replied(w.now, m.command.Seq, m.result) }
	if w.now > m.command.Deadline {
		w.factFor(w.owner(m.p, m.command.Term)).countUncertain = true
		w.hasLateCommand = true
	}
	if r := m.result; r.Outcome == lock.Refused && r.Holder == "" {
		p.leaveUntil = w.now + r.TTL
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
		if p.stalled && w.choices != nil {
			p.wakeAt = w.now
		}
	default:
		w.event(m.p, "reply", replied)
	}
}

// subscribe sends a subscription of a process to the lock's channel.
func (w *world) subscribe(i int, after time.Duration) {
	p := &w.processes[i]
	p.subscriptionAt = max(p.subscriptionAt, w.now+after+w.latency())
	w.send(message{kind: subscribing, p: i, term: p.channel, at: p.subscriptionAt})
}

func (w *world) unsubscribe(i int, term uint64) {
	p := &w.processes[i]
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	m := message{kind: unsubscribing, p: i, term: term, at: p.subscriptionAt}
	if w.choices != nil {
		w.send(m)
		return
	}
	w.net = slices.DeleteFunc(w.net, func(m message) bool { return m.p == i && m.kind >= signal && m.kind <= subscribed })
	w.deliver(m, fine)
}

// channel is the channel that a process listens to: in a fair lock, every waiter has its own.
func (w *world) channel(i int, term uint64) redismodel.Owner {
	if w.features.Fair {
		return w.owner(i, term)
	}
	return redismodel.Owner{}
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
