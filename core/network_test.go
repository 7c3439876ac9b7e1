package core_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
)

// latency is how long a message takes on its way.
func (w *world) latency() time.Duration {
	if w.faults.slow && !w.calm {
		return oneOf(w.tape, ms, ms/5, 5*ms, 40*ms, 200*ms, 600*ms, 1500*ms)
	}
	return oneOf(w.tape, ms, ms/5)
}

var (
	errLoading = errors.New("LOADING Redis is loading the dataset in memory")
	errTimeout = errors.New("i/o timeout")
	errNoPerm  = errors.New("NOPERM this user has no permissions")
)

// fate is what becomes of a command.
type fate int

const (
	answered fate = iota
	requestLost
	replyLost
	late
	loading
	rejected
)

func (w *world) fate() fate {
	f := oneOf(w.tape, answered, answered, answered, answered, answered, requestLost, replyLost, late, loading, rejected)
	switch {
	case w.calm:
		return answered
	case (f == requestLost || f == replyLost) && w.faults.lost, f == late && w.faults.late,
		f == loading && w.faults.errors, f == rejected && w.faults.rejected:
		return f
	}
	return answered
}

// send carries a command to Redis, and its result back.
func (w *world) send(p *process, c core.Command) {
	fate := w.fate()
	w.logf("%s sends %s%s", p.uuid, describe(c), [...]string{"", ", lost on the way", ", whose reply gets lost", ", which arrives late", ", not now", ", never"}[fate])
	if fate != answered {
		p.stained[c.Term] = true
	}
	p.underWay[c.Seq] = c.Term
	there, back := w.latency(), w.latency()
	carryOut := func(then func(core.Result)) {
		var do func()
		do = func() {
			if w.now < w.redis.frozenUntil {
				w.at(w.redis.frozenUntil, do)
				return
			}
			p.carriedOut(c)
			r := w.redis.run(p, c)
			w.logf("redis: %s of %s gives %s", describe(c), p.uuid, outcome(r))
			then(r)
		}
		w.after(there, do)
	}
	fail := func(d time.Duration, r core.Result) {
		r.Outcome = core.Failed
		w.after(d, func() { p.replied(c, r) })
	}
	// A caller that gave up says so at the deadline, or not at all.
	giveUp := func() {
		if w.tape.pick(2) == 0 {
			fail(c.Deadline-w.now, core.Result{Err: errTimeout, Transient: true, Unsure: true})
		}
	}
	switch fate {
	case answered:
		carryOut(func(r core.Result) { w.after(back, func() { p.replied(c, r) }) })
	case requestLost:
		giveUp()
	case replyLost:
		carryOut(func(core.Result) {})
		giveUp()
	case late:
		there += oneOf(w.tape, 0, 100*ms, 800*ms, 2*sec, 5*sec)
		carryOut(func(r core.Result) { w.after(back, func() { p.replied(c, r) }) })
		giveUp()
	case loading:
		fail(there+back, core.Result{Err: errLoading, Transient: true})
	case rejected:
		fail(there+back, core.Result{Err: errNoPerm})
	}
}

// subscribe gets a process the messages of the lock's channel.
func (w *world) subscribe(p *process) {
	term := p.channel
	channel := w.channel(p, term)
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	if w.faults.deaf && !w.calm && w.tape.pick(4) == 1 {
		w.logf("%s: its SUBSCRIBE gets lost", p.uuid)
		return
	}
	w.at(p.subscriptionAt, func() {
		if p.dead {
			return
		}
		w.redis.Subscribe(p.client, channel)
		w.after(w.latency(), func() { p.event("subscribed", func(l *core.Lock) { l.Subscribed(w.now, term) }) })
	})
}

// hear brings a message of its channel to a process.
func (p *process) hear() {
	w := p.w
	if w.faults.deaf && !w.calm && w.tape.pick(3) == 1 {
		w.logf("a message to %s gets lost", p.uuid)
		return
	}
	w.after(w.latency(), func() { p.event("signal", func(l *core.Lock) { l.Signal(w.now) }) })
}

// channel is what a process listens to: in a fair lock, every waiter has its own.
func (w *world) channel(p *process, term uint64) model.Owner {
	if w.kind.Queued {
		return p.owner(term)
	}
	return model.Owner{}
}

func (w *world) unsubscribe(p *process, term uint64) {
	p.subscriptionAt = max(p.subscriptionAt, w.now+w.latency())
	w.at(p.subscriptionAt, func() { w.redis.Unsubscribe(p.client, w.channel(p, term)) })
}

// reconnect makes every process that wants messages subscribe again.
func (w *world) reconnect() {
	for _, p := range w.processes {
		if p.listening && !p.dead {
			w.subscribe(p)
		}
	}
}

func describe(c core.Command) string {
	name := [...]string{"?", "acquire", "release", "renew", "yield", "force", "look", "enrol"}[c.Kind]
	if c.Kind == core.Enrol {
		return fmt.Sprintf("#%d enrol %v, take %v, release %d, top %d", c.Seq, c.Entries, c.Take, c.Term, c.Top)
	}
	return fmt.Sprintf("#%d %s term %d count %d+%d lease %v", c.Seq, name, c.Term, c.Count, c.Shared, c.Lease)
}

func outcome(r core.Result) string {
	name := [...]string{"?", "done", "kept", "refused", "absent", "failed"}[r.Outcome]
	switch {
	case r.Outcome == core.Refused:
		return fmt.Sprintf("%s by %s for %v", name, r.Holder, r.TTL)
	case r.Err != nil:
		return fmt.Sprintf("%s: %v", name, r.Err)
	}
	return name
}
