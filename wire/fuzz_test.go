package wire

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const clientID = "11111111-2222-3333-4444-555555555555"

// question is something that Redis is asked about a lock, and how its reply is tagged.
type question struct {
	about string
	lock  *Lock
	tag   uint64
	// ask is the kind of the command; 0: an inspection.
	ask core.CommandKind
}

const seqOfAll = 12345

// questions are all that there are.
func questions() []question {
	options := &Options{Client: clientID, Silence: 5 * time.Second, Announcement: 2 * time.Second}
	var all []question
	for kind, name := range map[Kind]string{Reentrant: "reentrant", Fair: "fair", ReadWrite: "read/write"} {
		l := New(kind, "orders", options)
		add := func(what string, ask core.CommandKind, tag uint64) {
			all = append(all, question{name + ": " + what, l, tag, ask})
		}
		commands := map[string]core.Command{
			"acquire": {Kind: core.Acquire, Count: 1}, "acquire with a token": {Kind: core.Acquire, Count: 1, Tokens: 1}, "re-enter": {Kind: core.Acquire, Count: 2},
			"release": {Kind: core.Release}, "release one": {Kind: core.Release, Count: 1},
			"yield": {Kind: core.Yield}, "force": {Kind: core.ForceRelease},
		}
		switch kind {
		case Fair:
			commands["enrol"] = core.Command{Kind: core.Enrol, Take: true, Entries: []core.Entry{{Term: 3, Lease: time.Second}}}
		case ReadWrite:
			commands["look"] = core.Command{Kind: core.Look}
		}
		for what, c := range commands {
			c.Seq, c.Term, c.Lease = seqOfAll, 3, 30*time.Second
			add(what, c.Kind, l.Call(&c, time.Time{}).Seq)
		}
		c := core.Command{Kind: core.Renew, Seq: seqOfAll, Term: 3, Lease: time.Second}
		add("renew", core.Renew, l.Renewal(&c, time.Time{}).Seq)
		add("inspect", 0, l.Inspect(time.Time{}).Seq)
		c = core.Command{Kind: core.Acquire, Seq: seqOfAll, Term: 3, Count: 1, Tokens: 1}
		add("vote", core.Acquire, l.Vote(&c, time.Second, Memory{}, "", time.Time{}).Seq)
		add("acquire all", core.Acquire, AcquireAll([]Member{{Lock: l}}, &c, time.Time{}).Seq)
	}
	slices.SortFunc(all, func(a, b question) int { return strings.Compare(a.about, b.about) })
	return all
}

// Whatever a server, or a proxy before it, replies to a script, it is read as one of the
// outcomes, and what comes along is nothing that no server can mean.
func FuzzRead(f *testing.F) {
	all := questions()
	for i := range all {
		which := uint8(i)
		f.Add(which, int64(0), int64(0), int64(0), "", "", uint8(1))
		f.Add(which, int64(0), int64(0), int64(0), "OK", "", uint8(0))
		f.Add(which, int64(1), int64(7), int64(0), clientID+":3", "1", uint8(0))
		f.Add(which, int64(0), int64(29999), int64(1), "99999999-2222-3333-4444-555555555555:1:write", "0", uint8(0))
		f.Add(which, int64(-1), int64(-1), int64(-1), clientID+":18446744073709551616", "x", uint8(0))
		f.Add(which, int64(-2), int64(0), int64(2), clientID+":4:write", "9223372036854775808", uint8(0))
		f.Add(which, int64(-3), int64(20000), int64(0), "5,9,x,", "-1", uint8(0))
		f.Add(which, int64(1), int64(7), int64(0), "", "0", uint8(0))
		f.Add(which, int64(9223372036855), int64(0), int64(0), "x", "", uint8(0)) // longer than a Duration
		f.Add(which, int64(0), int64(18446744073710), int64(0), "x", "", uint8(0))
		f.Add(which, int64(1), int64(0), int64(0), "5,9", "1", uint8(0))
		f.Add(which, int64(0), int64(0), int64(0), "", "", uint8(6))
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b, c int64, s, u string, flags uint8) {
		q := all[int(which)%len(all)]
		reply := redisio.Reply{Nil: flags&1 != 0, N: [3]int64{a, b, c}, S: [2]string{s, u}}
		if reply.Nil {
			reply.N, reply.S = [3]int64{}, [2]string{}
		}
		if flags&2 != 0 {
			reply = redisio.Reply{Err: redisio.Sort(errors.New(s + "lost"))}
			reply.Err.Transient = flags&4 != 0
		}
		if q.ask == 0 {
			if reply.Err == nil {
				view(t, q, reply)
			}
			return
		}
		seq, r := q.lock.Read(q.tag, reply)
		if seq != seqOfAll {
			t.Errorf("%s: the reply is to command %d", q.about, seq)
		}
		if how := q.reading(); reply.Err == nil && r.Outcome != core.Failed && meaningless(how, reply) {
			t.Errorf("%s: %+v was read as %+v", q.about, reply, r)
		}
		if r.Outcome < core.Done || r.Outcome > core.Failed || (r.Outcome == core.Failed) != (r.Err != nil) {
			t.Errorf("%s: %+v was read as %+v", q.about, reply, r)
		}
		if r.Err != nil && strings.TrimSpace(r.Err.Error()) == "" {
			t.Errorf("%s: %+v: the error says nothing", q.about, reply)
		}
		if reply.Err != nil {
			if !errors.Is(r.Err, reply.Err) || r.Transient != reply.Err.Transient || r.Unsure != reply.Err.Unsure {
				t.Errorf("%s: %+v was read as %+v", q.about, reply.Err, r)
			}
			return
		}
		for _, wrong := range misread(q, reply, r) {
			t.Errorf("%s: %s: %+v was read as %+v", q.about, wrong, reply, r)
		}
	})
}

// meaningless reports whether no script gives such a status, or such tokens.
func meaningless(how reading, reply redisio.Reply) bool {
	status := reply.N[0]
	switch how {
	case tookToken, set, tookAll, voted:
		if status == 1 {
			return reply.S[0] == "" && reply.N[1] < 0 || strings.ContainsAny(reply.S[0], "x-")
		}
		return status != 0 && status != -1 && status != -3
	case enrolled:
		return status == 1 && !strings.HasPrefix(reply.S[0], clientID+":")
	}
	return false
}

func (q question) reading() reading { return reading(q.tag & (1<<readingBits - 1)) }

// misread is what of a result no server can mean.
func misread(q question, reply redisio.Reply, r core.Result) (wrong []string) {
	check := func(ok bool, what string) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	if r.OwnTerm != 0 {
		field := reply.S[0]
		number := strings.TrimLeft(strings.TrimPrefix(q.lock.Owner(r.OwnTerm), clientID+":"), "0")
		check(strings.HasPrefix(field, clientID+":") && strings.HasSuffix(strings.TrimSuffix(field, ":write"), number), "the term is another's")
	}
	check(r.OwnTerm == 0 || r.Outcome == core.Refused || q.reading() == enrolled, "a term comes with it")
	check(r.Outcome != core.Kept || q.ask == core.Yield, "only a yield keeps anything")
	check(r.Outcome != core.Refused || slices.Contains([]core.CommandKind{core.Acquire, core.Enrol, core.Release}, q.ask), "who is refused has asked for something")
	check(len(r.Tokens) == 0 || r.Outcome == core.Done, "tokens of nothing")
	if r.Outcome == core.Refused {
		left := ttlOf(q, reply)
		check((r.TTL < 0) == (left < 0), "the TTL is endless, or not")
		check(left < 0 || r.TTL >= time.Duration(min(left, century))*time.Millisecond, "the TTL is too short")
		check(r.TTL <= math.MaxInt64/8*7, "the TTL overflows what it is added to")
	}
	check(r.Outcome != core.Done || q.reading() != enrolled || r.OwnTerm != 0, "nobody has taken the lock")
	for _, token := range r.Tokens {
		check(token > 0, "that is no token")
	}
	return wrong
}

// century is a hundred years, in ms.
const century = int64(100 * 365 * 24 * time.Hour / time.Millisecond)

// ttlOf is where the script puts the TTL.
func ttlOf(q question, reply redisio.Reply) int64 {
	if q.reading() == acquired {
		return reply.N[0]
	}
	return reply.N[1]
}

// view checks what is read from an inspection.
func view(t *testing.T, q question, reply redisio.Reply) {
	v := q.lock.View(q.tag, reply)
	wrong := func(what string) { t.Errorf("%s: %s: %+v was read as %+v", q.about, what, reply, v) }
	switch left := reply.N[0]; {
	case v.Locked != (left != -2):
		wrong("locked, or not")
	case (v.TTL < 0) != (left < 0):
		wrong("the TTL is endless, or not")
	case left >= 0 && v.TTL < time.Duration(min(left, century))*time.Millisecond:
		wrong("the TTL is too short")
	case v.Mode != core.Exclusive && v.Mode != core.Shared, v.Mode == core.Shared && q.lock.Kind != ReadWrite:
		wrong("the mode")
	case v.Locked && q.lock.Kind != ReadWrite && v.Holders != 1, !v.Locked && v.Holders != 0:
		wrong("the holders")
	case !strings.HasPrefix(reply.S[0], v.Holder):
		wrong("the holder")
	}
	// A count that is none, and readers beyond number, are Redis's own words.
}
