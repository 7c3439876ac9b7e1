package backend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// onTwoServers returns three locks; the lock on the other server is the middle one.
func onTwoServers(t *testing.T) (a, b, c MemberSpec) {
	name := redistest.Name(t)
	on := []*Server{open(t, redistest.Start(t).URL()), open(t, redistest.Start(t).URL())}
	member := func(server *Server, name string) MemberSpec {
		return MemberSpec{Server: server, Form: forms.Plain, Name: name}
	}
	return member(on[0], name+"a"), member(on[1], name+"b"), member(on[0], name+"c")
}

// A MultiLock leaves other wait queues if a member that is free is reserved for another MultiLock: one takes a and c
// apart, since b of another server is between them, the other by one script. Otherwise c would stay reserved for the
// first, and a for the second.
func TestMultiLock_LeavesItsPlacesToAnother(t *testing.T) {
	a, b, c := onTwoServers(t)
	apart, together := newMultiLock([]MemberSpec{a, b, c}, options()), newMultiLock([]MemberSpec{a, c}, options())
	holdA, holdC := newMultiLock([]MemberSpec{a}, options()), newMultiLock([]MemberSpec{c}, options())
	waits := term(8)
	waits.Entry = lock.Entry{Term: 8, TTL: time.Minute, Reserves: true}
	for i, step := range []struct {
		of   lockPart
		c    lock.Command
		want lock.Outcome
	}{
		{holdC, take, lock.Done}, {apart, waits, lock.Refused}, // at c
		{holdA, take, lock.Done}, {together, waits, lock.Refused}, // at a
		{holdC, asRelease(take), lock.Done}, {apart, waits, lock.Refused}, // at a, and c is reserved for it
		{holdA, asRelease(take), lock.Done}, {apart, waits, lock.Refused}, // at a, which is reserved for the other
		{together, waits, lock.Refused}, {apart, waits, lock.Refused}, // a while later
		{together, waits, lock.Done}, {apart, waits, lock.Refused},
		{together, asRelease(waits), lock.Done}, {apart, waits, lock.Done},
	} {
		entries := &apart.(*multiLock).entries
		entries.waitingSince = time.Time{} // the other has waited for as long: then entries may be in different orders
		if i == 9 {
			entries.reservedSince = time.Now().Add(-leaveAfter)
		}
		if r := ran(t, step.of, step.c); r.Outcome != step.want {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
}

// A MultiLock over several servers gets a free member that is reserved for another MultiLock which has waited for less
// time. Otherwise it starved: each try lost the entries in the members that it had taken, and the other kept its own.
func TestMultiLock_GoesBeforeAnotherThatHasWaitedForLess(t *testing.T) {
	a, b, c := onTwoServers(t)
	apart, together := newMultiLock([]MemberSpec{a, b, c}, options()), newMultiLock([]MemberSpec{a, c}, options())
	holdA, holdB := newMultiLock([]MemberSpec{a}, options()), newMultiLock([]MemberSpec{b}, options())
	waits := term(8)
	waits.Entry = lock.Entry{Term: 8, TTL: time.Minute, Reserves: true}
	for i, step := range []struct {
		of   lockPart
		c    lock.Command
		want lock.Outcome
	}{
		{holdB, take, lock.Done}, {apart, waits, lock.Refused}, // at b, and a is released again
		{holdA, take, lock.Done}, {together, waits, lock.Refused}, // at a
		{holdA, asRelease(take), lock.Done}, {holdB, asRelease(take), lock.Done}, // a is reserved for the other
		{apart, waits, lock.Done}, {together, waits, lock.Refused},
		{apart, asRelease(waits), lock.Done}, {together, waits, lock.Done},
	} {
		if r := ran(t, step.of, step.c); r.Outcome != step.want {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
}

// A MultiLock has the same place in all wait queues of a script. Otherwise two that have waited equally long would have
// different orders in them, and each would wait for what is reserved for the other.
func TestMultiLock_HasOnePlaceInTheQueuesOfAScript(t *testing.T) {
	name := redistest.Name(t)
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	first := MemberSpec{Server: open(t, servers[1].URL()), Form: forms.Plain, Name: name + "a"}
	parts, on := []MemberSpec{first}, open(t, servers[0].URL())
	for i := range 40 {
		parts = append(parts, MemberSpec{Server: on, Form: forms.Plain, Name: fmt.Sprint(name, "b", i)})
	}
	apart, holdFirst, holdLast := newMultiLock(parts, options()), newMultiLock(parts[:1], options()), newMultiLock(parts[40:], options())
	waits := term(8)
	waits.Entry = lock.Entry{Term: 8, TTL: time.Minute, Reserves: true}
	for i, step := range []struct {
		of   lockPart
		c    lock.Command
		want lock.Outcome
	}{
		{holdFirst, take, lock.Done}, {holdLast, take, lock.Done}, {apart, waits, lock.Refused}, // at the first
		{holdFirst, asRelease(take), lock.Done}, {apart, waits, lock.Refused}, // at the last
	} {
		if r := ran(t, step.of, step.c); r.Outcome != step.want {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
	places := map[string]int{}
	for _, part := range parts[1:] {
		values, err := servers[0].Do(t, "HVALS", keyspace.WaitQueue(part.Name)).AsStrSlice()
		if err != nil || len(values) != 1 {
			t.Fatal(values, err)
		}
		arrived, _, _ := strings.Cut(values[0], " ")
		places[arrived]++
	}
	if len(places) != 1 {
		t.Errorf("it has come to 40 queues at %d times", len(places))
	}
}

// A MultiLock that Redis rejects has not waited when it is acquired again.
func TestMultiLock_HasNotWaitedAfterARejection(t *testing.T) {
	name, servers := redistest.Name(t), []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	parts := []MemberSpec{{Server: open(t, servers[0].URL()), Form: forms.Plain, Name: name + "a"}, {Server: open(t, servers[1].URL()), Form: forms.Plain, Name: name + "b"}}
	both, holdA := newMultiLock(parts, options()), newMultiLock(parts[:1], options())
	waits := term(8)
	waits.Entry = lock.Entry{Term: 8, TTL: time.Minute, Reserves: true}
	servers[1].Do(t, "HSET", name+"b", "email", "x")
	for i, step := range []struct {
		of   lockPart
		c    lock.Command
		want lock.Outcome
	}{
		{holdA, take, lock.Done}, {both, waits, lock.Refused}, {holdA, asRelease(take), lock.Done}, {both, waits, lock.Failed},
	} {
		if r := ran(t, step.of, step.c); r.Outcome != step.want {
			t.Fatalf("step %d: %+v", i, r)
		}
	}
	if waited := both.(*multiLock).entries.waitingTime(time.Minute, time.Now()); waited != 0 {
		t.Errorf("it has waited for %v", waited)
	}
}
