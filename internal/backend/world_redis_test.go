package backend

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The servers of a world, and the way to them.

// node is a server. It does not answer before frozenUntil.
type node struct {
	redismodel.Server
	frozenUntil machine.Instant
}

// link is the client of a process for a server. Each command has a connection of its own, as it were: any one may be
// carried out before or after any other.
type link struct {
	rueidis.Client
	world       *world
	process, to int
	builder     rueidis.Builder
}

// call is a command on its way, until it has its answer.
type call struct {
	process, to int
	words       []string
	deadline    time.Time
	reply       chan rueidis.RedisResult
}

func (l link) B() rueidis.Builder { return l.builder }

func (l link) Mode() rueidis.ClientMode { return rueidis.ClientModeStandalone }

func (l link) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	return l.DoMulti(ctx, command)[0]
}

func (l link) DoMulti(ctx context.Context, commands ...rueidis.Completed) (results []rueidis.RedisResult) {
	var calls []*call
	deadline, _ := ctx.Deadline()
	for _, command := range commands {
		calls = append(calls, &call{l.process, l.to, slices.Clone(command.Commands()), deadline, make(chan rueidis.RedisResult, 1)})
	}
	l.world.note(func() {
		if !l.world.over {
			l.world.sent = append(l.world.sent, calls...)
			return
		}
		for _, c := range calls {
			c.reply <- rueidis.NewErrorResult(rueidis.ErrClosing)
		}
	})
	for _, c := range calls {
		results = append(results, <-c.reply)
	}
	return results
}

// transmit puts a call on its way. It, or its reply, may get lost. It may be carried out after the client has ceased to
// wait.
func (w *world) transmit(c *call) {
	w.calls = append(w.calls, c)
	w.after(time.Until(c.deadline), func() { w.answer(c, rueidis.NewErrorResult(context.DeadlineExceeded)) })
	if w.hits(w.faulty / 3) {
		w.logf("p%d to server %d: %v, lost", c.process, c.to, c.words[3:])
		return
	}
	w.after(w.delay(), func() { w.arrive(c) })
}

func (w *world) arrive(c *call) {
	n := &w.nodes[c.to]
	if frozen := n.frozenUntil - w.Now(); frozen > 0 {
		w.after(frozen+w.delay(), func() { w.arrive(c) })
		return
	}
	n.At(w.Now())
	reply := w.execute(n, c.words)
	w.logf("p%d at server %d: %v; then %v until %v", c.process, c.to, c.words[3:], n.Part(0).Holders, n.Part(0).ExpiresAt)
	if !w.hits(w.faulty / 5) {
		w.after(w.delay(), func() { w.answer(c, reply) })
	}
}

// answer answers a call, unless it has an answer.
func (w *world) answer(c *call, r rueidis.RedisResult) {
	if i := slices.Index(w.calls, c); i >= 0 {
		w.calls = slices.Delete(w.calls, i, i+1)
		c.reply <- r
	}
}

// execute does what a script does, and returns its reply. A release wakes the processes, unless its message gets lost.
func (w *world) execute(n *node, words []string) rueidis.RedisResult {
	is := func(s *scripts.Script) bool { return words[1] == s.SHA || words[1] == s.Source }
	number := func(word string) int {
		i, _ := strconv.Atoi(word)
		return i
	}
	args := words[3+number(words[2]):]
	client, term, _ := strings.Cut(args[0], ":")
	c := lock.Command{Term: uint64(number(term))}
	switch {
	case is(scripts.Inspect):
		for _, h := range n.Part(0).Holders {
			return message(int64((n.Part(0).ExpiresAt - w.Now()).Milliseconds()), int64(0), h.String(), strconv.Itoa(h.Exclusive))
		}
		return message(scripts.NoKey, int64(0), "", "")
	case is(scripts.Renew):
		c.Kind, c.Lease = lock.Renew, time.Duration(number(args[1]))*time.Millisecond
	case is(scripts.Keep):
		c.Kind, c.Lease = lock.Keep, time.Duration(number(args[2]))*time.Millisecond
	case is(scripts.ForceRelease):
		c.Kind, c.Owners = lock.ForceRelease, args[1:]
	default:
		c.Kind, c.Count, c.Lease = lock.Acquire, number(args[1]), time.Duration(number(args[2]))*time.Millisecond
		if is(scripts.Release) {
			c.Kind = lock.Release
		}
	}
	r, published := n.Run(redismodel.Client(number(client)), -1, c)
	if len(published) > 0 && !w.hits(w.faulty/3) {
		for _, p := range w.processes {
			w.after(w.delay(), func() { p.apply("signal", func(l *lock.Lock) { l.Signal(w.Now()) }) })
		}
	}
	done, ttl := r.Outcome == lock.Done, r.TTL.Milliseconds()
	switch {
	case is(scripts.MajorityAcquire):
		status := map[lock.Outcome]int64{lock.Done: scripts.Granted, lock.Refused: scripts.Refused, lock.Absent: scripts.Absent}[r.Outcome]
		return message(status, ttl, r.Holder, "")
	case is(scripts.Acquire) && done:
		return message()
	case is(scripts.Acquire) && r.Outcome == lock.Refused:
		return message(ttl, r.Holder)
	case is(scripts.Acquire):
		return message(scripts.NoKey, "")
	case is(scripts.Renew), is(scripts.Keep):
		return message(map[bool]int64{true: scripts.Renewed, false: map[bool]int64{true: scripts.Taken, false: scripts.Gone}[r.Taken]}[done])
	case is(scripts.ForceRelease):
		return message(map[bool]int64{true: 1}[r.WasHeld])
	case is(scripts.Release) && done:
		return message(int64(c.Count))
	case is(scripts.Release):
		return message(int64(-1))
	}
	w.violated("a script that no RedLock needs: %v", words)
	return rueidis.RedisResult{}
}

// message returns a reply, an array of numbers and texts; without any it is nil.
func message(values ...any) rueidis.RedisResult {
	text := make([]byte, 7) // for the time of a cache
	add := func(kind byte, number int) { text = binary.BigEndian.AppendUint64(append(text, kind), uint64(number)) }
	if len(values) == 0 {
		add('_', 0)
	} else {
		add('*', len(values))
	}
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			add(':', int(v))
		case string:
			add('$', len(v))
			text = append(text, v...)
		}
	}
	var m rueidis.RedisMessage
	err := m.CacheUnmarshalView(text)
	return rueidis.NewResult(m, err)
}
