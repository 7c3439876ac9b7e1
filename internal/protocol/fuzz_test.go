package protocol

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

const clientID = "11111111-2222-3333-4444-555555555555"

// question is a call about a lock, with the format of its reply.
type question struct {
	lock *Lock
	how  replyFormat
	// kind is the kind of the command; 0: an inspection.
	kind lock.CommandKind
}

// questions returns the calls of all formats.
func questions() (all []question) {
	options := &Options{Client: clientID, WaiterTimeout: 5 * time.Second}
	for _, form := range forms.All {
		l := New(form, "orders", options)
		commands := []lock.Command{
			{Kind: lock.Acquire, Count: 1}, {Kind: lock.Acquire, Count: 1, Tokens: 1}, {Kind: lock.Acquire, Count: 2},
			{Kind: lock.Release}, {Kind: lock.Release, Count: 1}, {Kind: lock.Yield}, {Kind: lock.ForceRelease},
		}
		switch form {
		case forms.Fair:
			commands = append(commands, lock.Command{Kind: lock.SyncQueue, Take: true, Entries: []lock.QueueEntry{{Term: 3, Lease: time.Second}}})
		case forms.ReadWrite:
			commands = append(commands, lock.Command{Kind: lock.CountWaiters})
		}
		for _, c := range commands {
			c.Term, c.Lease = 3, 30*time.Second
			all = append(all, question{l, l.Call(&c, time.Time{}).Format, c.Kind})
		}
		c := lock.Command{Kind: lock.Acquire, Term: 3, Lease: time.Second, Count: 1, Tokens: 1}
		all = append(all,
			question{l, l.Renewal(&c, time.Time{}).Format, lock.Renew},
			question{l, l.Inspect(time.Time{}).Format, 0},
			question{l, l.Vote(&c, time.Second, Memory{}, "", time.Time{}).Format, lock.Acquire},
			question{l, AcquireAll([]Member{{Lock: l}}, &c, time.Time{}).Format, lock.Acquire})
	}
	return all
}

// Any reply of a server, or of a proxy before it, is read as one of the outcomes, with consistent values.
func FuzzRead(f *testing.F) {
	all := questions()
	for i := range all {
		for _, r := range []struct {
			a, b, c int64
			s, u    string
			flags   uint8
		}{
			{flags: 1},
			{s: "OK"},
			{a: 1, b: 7, s: clientID + ":3", u: "1"},
			{a: 0, b: 29999, c: 1, s: "99999999-2222-3333-4444-555555555555:1:write", u: "0"},
			{a: -1, b: -1, c: -1, s: clientID + ":18446744073709551616", u: "x"},
			{a: -2, c: 2, s: clientID + ":4:write", u: "9223372036854775808"},
			{a: -3, b: 20000, s: "5,9,x,", u: "-1"},
			{a: 1, b: 7, u: "0"},
			{a: 9223372036855, s: "x"}, // longer than a Duration
			{b: 18446744073710, s: "x"},
			{a: 1, s: "5,9", u: "1"},
			{flags: 6},
		} {
			f.Add(uint8(i), r.a, r.b, r.c, r.s, r.u, r.flags)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, a, b, c int64, s, u string, flags uint8) {
		q := all[int(which)%len(all)]
		reply := redisclient.Reply{Nil: flags&1 != 0, N: [3]int64{a, b, c}, S: [2]string{s, u}}
		if reply.Nil {
			reply.N, reply.S = [3]int64{}, [2]string{}
		}
		if flags&2 != 0 {
			reply = redisclient.Reply{Err: redisio.Classify(errors.New(s + "lost"))}
			reply.Err.Transient = flags&4 != 0
		}
		reply.Format = q.how
		if q.kind != 0 {
			checkResult(t, q, reply)
		} else if reply.Err == nil {
			checkView(t, q, reply)
		}
	})
}

func checkResult(t *testing.T, q question, reply redisclient.Reply) {
	r := q.lock.Read(reply)
	how, field := q.how, reply.S[0]
	check := func(ok bool, what string) {
		if !ok {
			t.Errorf("%s, reply format %d: %s: %+v was read as %+v", q.lock.Form.Name, how, what, reply, r)
		}
	}
	check(r.Outcome >= lock.Done && r.Outcome <= lock.Failed && (r.Outcome == lock.Failed) == (r.Err != nil), "the outcome")
	check(r.Err == nil || strings.TrimSpace(r.Err.Error()) != "", "the error has no text")
	if reply.Err != nil {
		check(errors.Is(r.Err, reply.Err) && r.Transient == reply.Err.Transient && r.Unsure == reply.Err.Unsure, "the error")
		return
	}
	check(r.Outcome == lock.Failed || !invalid(how, reply), "no script replies that")
	if r.OwnTerm != 0 {
		number := strings.TrimLeft(strings.TrimPrefix(q.lock.Owner(r.OwnTerm), clientID+":"), "0")
		check(strings.HasPrefix(field, clientID+":") && strings.HasSuffix(strings.TrimSuffix(field, ":write"), number), "the term belongs to another client")
	}
	check(r.OwnTerm == 0 || r.Outcome == lock.Refused || how == queueSynced, "an unexpected term")
	check(r.Outcome != lock.Renewed || q.kind == lock.Yield, "only a yield renews a lock")
	check(r.Outcome != lock.Done || how != queueSynced || r.OwnTerm != 0, "no owner has taken the lock")
	check(len(r.Tokens) == 0 || r.Outcome == lock.Done && slices.Min(r.Tokens) > 0, "invalid tokens")
	if r.Outcome == lock.Refused {
		check(q.kind == lock.Acquire || q.kind == lock.SyncQueue || q.kind == lock.Release, "a command that cannot be refused")
		left := reply.N[1]
		if how == acquired {
			left = reply.N[0]
		}
		check(sameTTL(r.TTL, left), "the TTL")
		check(r.TTL <= math.MaxInt64/8*7, "the TTL overflows what it is added to")
	}
}

// invalid reports whether no script replies with such a status, or such tokens.
func invalid(how replyFormat, reply redisclient.Reply) bool {
	status := reply.N[0]
	switch how {
	case fencedAcquired, set, allAcquired, voted:
		if status == 1 {
			return reply.S[0] == "" && reply.N[1] < 0 || strings.ContainsAny(reply.S[0], "x-")
		}
		return status != 0 && status != -1 && status != -3
	case queueSynced:
		return status == 1 && !strings.HasPrefix(reply.S[0], clientID+":")
	}
	return false
}

// sameTTL reports whether both are endless, or neither is too short; a hundred years suffice.
func sameTTL(ttl time.Duration, ms int64) bool {
	const century = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	return (ttl < 0) == (ms < 0) && (ms < 0 || ttl >= time.Duration(min(ms, century))*time.Millisecond)
}

// checkView checks a view. Counts that are not numbers, and any number of readers, may occur in Redis.
func checkView(t *testing.T, q question, reply redisclient.Reply) {
	v := q.lock.View(reply)
	readWrite := q.lock.Form == forms.ReadWrite
	if v.Locked != (reply.N[0] != -2) || !sameTTL(v.TTL, reply.N[0]) || !strings.HasPrefix(reply.S[0], v.Holder) ||
		v.Mode != machine.Exclusive && (v.Mode != machine.Shared || !readWrite) ||
		v.Locked && !readWrite && v.Holders != 1 || !v.Locked && v.Holders != 0 {
		t.Errorf("%s: %+v was read as %+v", q.lock.Form.Name, reply, v)
	}
}
