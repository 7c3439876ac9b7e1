package backend

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// process is a lock, its majority, and a client that uses it.
type process struct {
	*world
	index   int
	cfg     machine.Config
	lock    lock.Lock
	backend Backend
	servers []*Server
	clients []*redisclient.Redis
	ids     uint64
	terms   uint64
	waiting int // acquires without an answer
	hold    wish
	// releasing: a release of the hold has no answer. keepUntil is the end of the minimum time of the last hold.
	releasing bool
	keepUntil machine.Instant
}

// wish is the ref of a request, and of its hold. The zero wish is none.
type wish struct {
	what  string
	id    uint64
	owner machine.Owner
	// atLeast is the minimum time that an acquire asks for.
	atLeast time.Duration
}

func (w *world) addProcess(builder rueidis.Builder) {
	p := &process{world: w, index: len(w.processes), cfg: machine.Config{
		Watchdog: watchdog, Renewal: watchdog / 3, HandOffLimit: 100 * time.Millisecond, ForcedYield: time.Second,
		Poll: 500 * time.Millisecond, CallTimeout: 500 * time.Millisecond, QueueLimit: 100, Seed: w.Uint64(),
	}}
	for i := range w.nodes {
		p.clients = append(p.clients, redisclient.New(link{world: w, process: p.index, to: i, builder: builder}, 0))
		p.servers = append(p.servers, NewServer(w, p.clients[i], Config{CallTimeout: p.cfg.CallTimeout}))
	}
	p.lock = lock.New(&p.cfg, &lock.Features{Parts: true})
	p.backend = NewRedLock(p.servers, "name", &protocol.Options{Client: strconv.Itoa(p.index)}, p)
	w.processes = append(w.processes, p)
}

// Replied implements Receiver.
func (p *process) Replied(seq uint64, r Reply) {
	p.note(func() {
		p.replied = append(p.replied, func() {
			if r.Outcome == lock.Refused && r.TTL%time.Millisecond != 0 {
				r.TTL = time.Duration(p.Int64N(int64(maxSplitPause))) // it was drawn without the seed
			}
			p.apply(fmt.Sprintf("reply to #%d: %+v", seq, r.Result), func(l *lock.Lock) { l.Replied(p.Now(), seq, r.Result) })
		})
	})
}

// Lend implements Receiver.
func (p *process) Lend(lock.CommandKind, redisclient.Call) bool { return false }

// apply applies an event to the lock, and carries out its effects.
func (p *process) apply(what string, event func(*lock.Lock)) {
	p.logf("p%d: %s", p.index, what)
	if !p.lock.HasNextTerm() {
		p.terms++
		p.lock.SetNextTerm(p.terms)
	}
	event(&p.lock)
	for e := (machine.Effect{}); p.lock.NextEffect(&e); {
		switch e.Kind {
		case machine.Send:
			c := *e.Ref.(*lock.Command)
			p.logf("p%d: sends #%d, kind %d, term %d, count %d, lease %v", p.index, c.Seq, c.Kind, c.Term, c.Count, c.Lease)
			p.backend.Run(c, time.Now().Add(c.Deadline-p.Now()))
		case machine.Reply:
			p.answered(e.Ref.(wish), e.Answer)
		case machine.NotifyLost:
			p.keepUntil = 0
		case machine.HoldEnded:
			p.logf("p%d: %+v is over", p.index, e.Ref)
			p.hold, p.releasing = wish{}, false
		case machine.Subscribe:
			p.after(p.delay(), func() { p.apply("subscribed", func(l *lock.Lock) { l.Subscribed(p.Now(), e.Term) }) })
		}
	}
}

func (p *process) answered(to wish, a machine.Answer) {
	p.logf("p%d: %+v is answered: kind %d, hold %d, until %v, %s", p.index, to, a.Kind, a.HoldID, a.Until, a.Detail)
	switch to.what {
	case "acquire":
		p.waiting--
	case "release":
		if p.releasing = p.releasing && to.id != p.hold.id; a.Kind == machine.Freed && p.hold.id == 0 {
			p.keptUntil = max(p.keptUntil, p.keepUntil)
		}
	}
	switch {
	case a.Kind != machine.Granted:
		return
	case a.HoldID == to.id:
		if p.hold, p.keepUntil = to, 0; p.Now() < p.keptUntil {
			p.violated("p%d: %+v is granted, although the minimum time of another hold lasts until %v", p.index, to, p.keptUntil)
		}
	}
	if to.atLeast > 0 {
		p.keepUntil = max(p.keepUntil, p.Now()+to.atLeast)
	}
}

func (p *process) acquire(owner machine.Owner, lease time.Duration) {
	p.ids++
	p.waiting++
	to := wish{"acquire", p.ids, owner, 0}
	if lease == 0 || lease >= 2*time.Second {
		to.atLeast = p.millis(0, 0, 0, 300, 1500)
	}
	req := machine.Request{ID: p.ids, Owner: owner, Lease: lease, AtLeast: to.atLeast, Ref: to}
	p.apply(fmt.Sprintf("%+v for %v", to, lease), func(l *lock.Lock) { l.Acquire(p.Now(), req) })
}

func (p *process) release() {
	p.releasing = true
	p.request("release", func(l *lock.Lock, to wish) { l.Release(p.Now(), machine.Release{ID: to.id, Ref: to}) })
}

func (p *process) extend(lease time.Duration) {
	p.request(fmt.Sprintf("extend for %v", lease), func(l *lock.Lock, to wish) { l.Extend(p.Now(), to.id, 0, lease, to) })
}

// request makes a request about the hold.
func (p *process) request(what string, about func(*lock.Lock, wish)) {
	to := wish{what: what, id: p.hold.id}
	p.apply(fmt.Sprintf("%s %d", what, to.id), func(l *lock.Lock) { about(l, to) })
}
