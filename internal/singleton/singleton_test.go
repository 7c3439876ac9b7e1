package singleton

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// open returns an outbox that has sent n messages to a gate, which has received and begun some.
func open(t *testing.T, n int, received, begun uint64) *Outbox[int] {
	t.Helper()
	o := &Outbox[int]{Proxy: "p", Limits: Limits{Buffer: 1000, Wait: 10 * time.Second, Poll: time.Second}}
	for i := range n {
		o.Add(0, i+1, 10)
	}
	do := o.HandleLookup(0, &Whereabouts{At: Place{"a", "g"}})
	if do.Probe == nil || do.Probe.Next != 1 || do.Probe.Known {
		t.Fatalf("the first look-up causes %+v, want a probe of message 1", do)
	}
	do = o.HandleState(0, GateState{Proxy: "p", Gate: "g", Probe: do.Probe.Number})
	if len(do.Sent) != min(n, Window) {
		t.Fatalf("%d are sent", len(do.Sent))
	}
	o.HandleState(0, GateState{Proxy: "p", Gate: "g", Probe: 1, Received: received, Begun: begun})
	return o
}

// again opens an outbox that is closed.
func again(o *Outbox[int], now time.Duration, received, begun uint64) Actions[int] {
	do := o.HandleLookup(now, &Whereabouts{At: Place{"a", "g"}})
	return o.HandleState(now, GateState{Proxy: "p", Gate: "g", Probe: do.Probe.Number, Received: received, Begun: begun})
}

func numbers(sent []Numbered[int]) (list []uint64) {
	for _, each := range sent {
		list = append(list, each.Number)
	}
	return list
}

func expect[T comparable](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// An answer to an earlier proxy, which had the same PID, has other numbers.
func TestOutbox_IgnoresAnswersToAnotherProxy(t *testing.T) {
	o := open(t, 5, 5, 1)
	o.HandleState(0, GateState{Proxy: "earlier", Gate: "g", Probe: 1, Received: 64, Begun: 64})
	o.Suspect(0)
	do := o.HandleLookup(0, &Whereabouts{At: Place{"a", "g"}})
	if do.Probe == nil || do.Probe.Next != 2 {
		t.Errorf("the probe is %+v, want one of message 2", do.Probe)
	}
	if do = o.HandleState(0, GateState{Proxy: "earlier", Gate: "g", Probe: 64, Forgotten: true}); len(do.Refused) > 0 {
		t.Errorf("refuses %v", do.Refused)
	}
}

// A message that does not arrive though it is sent again and again is refused when it is the first, and its number is
// not used again.
func TestOutbox_RefusesWhatNeverArrives(t *testing.T) {
	o := open(t, 3, 1, 0)
	var do Actions[int]
	for i := range maxTries + 1 {
		now := time.Duration(i+1) * time.Second
		o.Tick(now)
		do = again(o, now, 1, 0)
	}
	expect(t, "sent again though it is not the first", numbers(do.Sent), 2, 3)
	o.Tick(10 * time.Second)
	do = again(o, 10*time.Second, 1, 1)
	expect(t, "refused", do.Refused, 2)
	do = o.HandleLookup(10*time.Second, &Whereabouts{At: Place{"a", "g"}})
	if do.Probe == nil || do.Probe.Next != 3 || !do.Probe.Known {
		t.Errorf("the probe is %+v, want one of message 3, to a known gate", do.Probe)
	}
}

// A connection that breaks again and again for a short time costs no message.
func TestOutbox_CountsOneTryEachPoll(t *testing.T) {
	o := open(t, 3, 0, 0)
	for i := range 5 * maxTries {
		now := time.Duration(i) * o.Poll / (5 * maxTries)
		o.Suspect(now)
		expect(t, "refused", again(o, now, 0, 0).Refused)
	}
}

// A message that the other node cannot decode causes a hint each time it is sent: the lookups do not follow each other
// without a pause then.
func TestOutbox_PausesBetweenHintsOfNoUse(t *testing.T) {
	o := open(t, 3, 0, 0)
	lookups := 0
	for now := time.Duration(0); now < o.Poll; now += time.Millisecond {
		if do := o.Suspect(now); do.Look || o.lookupPending {
			lookups++
			again(o, now, 0, 0)
		}
	}
	if lookups > 8 { // after 25, 50, 100, 200 ms, and then every quarter of Poll
		t.Errorf("%d lookups in a Poll", lookups)
	}
	o.Suspect(2 * o.Poll)
	again(o, 2*o.Poll, 1, 1)
	if do := o.Suspect(2 * o.Poll); !do.Look {
		t.Error("no lookup at once after a message was begun")
	}
}

// Messages that were sent are refused together, if the gate is silent for too long and no other one is found; others
// when they have waited for long enough.
func TestOutbox_RefusesInTime(t *testing.T) {
	o := open(t, 70, 0, 0)
	do := o.Tick(10 * time.Second)
	expect(t, "refused after the wait", do.Refused, 65, 66, 67, 68, 69, 70)
	if at, _ := o.NextWake(); at > 11*time.Second {
		t.Errorf("the next tick is at %v", at)
	}
	if do := o.Tick(11 * time.Second); len(do.Refused) != Window {
		t.Errorf("%d are refused", len(do.Refused))
	}
	if at, due := o.NextWake(); due {
		t.Errorf("a tick is due at %v", at)
	}
}

// An instance that has left tells which messages it has begun; an instance that has disappeared does not.
func TestOutbox_RefusesWhatALeftInstanceHasNotBegun(t *testing.T) {
	place := Place{"b", "h"}
	left := func(begun map[string]uint64) *Whereabouts {
		return &Whereabouts{At: place, Left: map[string]map[string]uint64{"g": begun, "f": {"p": 3}}}
	}
	for what, c := range map[string]struct {
		w       *Whereabouts
		refused []int
		next    uint64
	}{
		"left":                 {left(map[string]uint64{"p": 2}), nil, 3},
		"left, forgotten":      {left(map[string]uint64{"q": 2}), []int{2, 3, 4}, 5},
		"left, no other":       {&Whereabouts{At: Place{"a", "g"}, Left: map[string]map[string]uint64{"g": {"p": 2}}}, nil, 0},
		"gone":                 {&Whereabouts{At: place, Left: map[string]map[string]uint64{"f": {"p": 3}}}, []int{2, 3, 4}, 5},
		"there":                {&Whereabouts{At: Place{"a", "g"}}, nil, 2},
		"Redis has forgotten":  {&Whereabouts{}, nil, 0},
		"Redis does not reply": {nil, nil, 2},
	} {
		o := open(t, 4, 4, 1)
		o.Suspect(0)
		o.Add(0, 5, 10)
		do := o.HandleLookup(0, c.w)
		expect(t, what+": refused", do.Refused, c.refused...)
		if do.Probe == nil && c.next != 0 || do.Probe != nil && do.Probe.Next != c.next {
			t.Errorf("%s: the probe is %+v, want one of message %d", what, do.Probe, c.next)
		}
	}
}

// A hand-over refuses nothing: the wait begins anew, also of messages that a slow instance has had for longer.
func TestOutbox_WaitsAnewAfterAHandOver(t *testing.T) {
	o := open(t, Window+1, Window, 1)
	now := 9 * time.Second
	o.Add(now, Window+2, 10)
	o.HandleState(now, GateState{Proxy: "p", Gate: "g", Probe: 1, Received: Window, Begun: 2})
	now = 18 * time.Second
	do := o.HandleLookup(now, &Whereabouts{Left: map[string]map[string]uint64{"g": {"p": 2}}})
	expect(t, "refused", do.Refused)
	expect(t, "refused within the wait", o.Tick(now+o.Wait-1).Refused)
	if do = o.Tick(now + o.Wait); len(do.Refused) != Window {
		t.Errorf("%d are refused", len(do.Refused))
	}
}

// After a while without messages the proxy asks whether the instance is still there.
func TestOutbox_AsksAfterAWhile(t *testing.T) {
	o := open(t, 1, 1, 1)
	if do := o.Add(time.Second, 2, 10); len(do.Sent) != 1 || do.Look {
		t.Errorf("soon: %+v", do)
	}
	o.HandleState(time.Second, GateState{Proxy: "p", Gate: "g", Probe: 1, Received: 2, Begun: 2})
	if do := o.Add(3*time.Second, 3, 10); len(do.Sent) > 0 || !do.Look {
		t.Errorf("later: %+v", do)
	}
}

// What is on its way is bounded in bytes, but for one message.
func TestOutbox_BoundsBytes(t *testing.T) {
	o := open(t, 1, 1, 1)
	expect(t, "a large one", numbers(o.Add(0, 2, 2*windowBytes).Sent), 2)
	expect(t, "behind it", numbers(o.Add(0, 3, 1).Sent))
	o.Add(0, 4, windowBytes-1)
	expect(t, "when it is begun", numbers(o.HandleState(0, GateState{Proxy: "p", Gate: "g", Probe: 1, Received: 2, Begun: 2}).Sent), 3, 4)
}

func TestOutbox_HasABoundedBuffer(t *testing.T) {
	o := &Outbox[int]{Limits: Limits{Buffer: 2, Wait: time.Hour, Poll: time.Second}}
	o.Add(0, 1, 1)
	o.Add(0, 2, 1)
	expect(t, "refused", o.Add(0, 3, 1).Refused, 3)
	expect(t, "refused at the stop", o.Stop(), 1, 2)
}

// The gate takes messages without gaps, from proxies that have asked, and begins none that its proxy has refused.
func TestLedger_TakesMessagesInOrder(t *testing.T) {
	l := &Ledger[string]{Gate: "g"}
	receive := func(number uint64, want bool) {
		t.Helper()
		if got := l.Receive(0, "p", number); got != want {
			t.Errorf("receives %d: %v", number, got)
		}
	}
	receive(1, false)
	if h := l.Probe(0, "p", "", Probe{}); !h.Forgotten {
		t.Errorf("answers %+v to what is no probe", h)
	}
	if h := l.Probe(0, "p", "", Probe{Number: 1, Next: 5}); h != (GateState{Proxy: "p", Gate: "g", Probe: 1, Received: 4, Begun: 4}) {
		t.Errorf("the gate answers %+v, want 4 received and begun", h)
	}
	receive(4, false)
	receive(6, false)
	receive(5, true)
	receive(5, false)
	receive(6, true)
	receive(7, true)
	if h, ok := l.Begin(0, "p", 5, true); !ok || h != (GateState{Proxy: "p", Gate: "g", Probe: 1, Received: 7, Begun: 5}) {
		t.Errorf("the gate answers %+v, %v, want 7 received and 5 begun", h, ok)
	}
	if _, ok := l.Begin(0, "p", 5, true); ok {
		t.Error("a message is begun twice")
	}
	l.Probe(0, "p", "", Probe{Number: 2, Next: 7, Known: true})
	if _, ok := l.Begin(0, "p", 6, true); ok {
		t.Error("a message that was refused is begun")
	}
	if _, ok := l.Begin(0, "p", 7, true); !ok || !maps.Equal(l.Begun(), map[string]uint64{"p": 7}) {
		t.Errorf("begun are %v", l.Begun())
	}
}

// What an instance may not begin, or what is behind a message that it has never got, is sent again.
func TestLedger_HasNoGaps(t *testing.T) {
	l := &Ledger[string]{}
	l.Probe(0, "p", "contact", Probe{Number: 1, Next: 1})
	receive := func() {
		for number := range uint64(4) {
			l.Receive(0, "p", number)
		}
	}
	begin := func(number uint64, may, want bool) {
		t.Helper()
		if _, got := l.Begin(0, "p", number, may); got != want {
			t.Errorf("begins %d: %v", number, got)
		}
	}
	receive()
	expect(t, "waiting", l.Waiting(), "contact")
	begin(1, true, true)
	begin(2, false, false)
	expect(t, "waiting", l.Waiting())
	begin(3, true, false) // would lose the second
	if h := l.Probe(0, "p", "", Probe{Number: 2, Next: 1, Known: true}); h.Received != 1 || h.Begun != 1 {
		t.Errorf("the gate answers %+v, want 1 received and begun", h)
	}
	receive()
	begin(3, true, false) // the second is lost in a mailbox
	receive()
	begin(2, true, true)
	begin(3, true, true)
	begin(3, true, false)
}

// A gate forgets idle proxies when it knows many. It says so to a proxy that asks again, and knows which messages it
// has not begun.
func TestLedger_ForgetsIdleProxies(t *testing.T) {
	l := &Ledger[string]{}
	for i := range maxKnown {
		l.Probe(0, fmt.Sprint(i), "", Probe{Number: 1, Next: 1})
	}
	l.Receive(0, "busy", 1)
	l.Probe(0, "0", "", Probe{Number: 2, Next: 1, Known: true})
	l.Receive(0, "0", 1)
	l.Probe(2*forgetAfter, "new", "", Probe{Number: 1, Next: 1})
	if len(l.proxies) != 2 {
		t.Errorf("it knows %d proxies", len(l.proxies))
	}
	if h := l.Probe(0, "1", "", Probe{Number: 2, Next: 1, Known: true}); !h.Forgotten {
		t.Errorf("answers %+v", h)
	}
	o := open(t, 3, 3, 1)
	o.Suspect(0)
	o.HandleLookup(0, &Whereabouts{At: Place{"a", "g"}})
	do := o.HandleState(0, GateState{Proxy: "p", Gate: "g", Forgotten: true})
	expect(t, "refused", do.Refused, 2, 3)
	o.Add(0, 4, 10)
	if do = o.HandleLookup(0, &Whereabouts{At: Place{"a", "g"}}); do.Probe == nil || do.Probe.Known || do.Probe.Next != 4 {
		t.Errorf("the probe is %+v, want one of message 4, to a new gate", do.Probe)
	}
}

// What is written to Redis is read again, and text of another form counts as missing.
func TestWhereabouts_AreReadAgain(t *testing.T) {
	place := Place{"127.0.0.1:80", "g"}
	w := Read("7 "+place.String(), "6 "+LeftText("f", map[string]uint64{"p": 3})+"\n5 "+LeftText("e", nil))
	if w.At != place || len(w.Left) != 2 || w.Left["f"]["p"] != 3 {
		t.Errorf("read %+v", w)
	}
	for _, text := range []string{"", "7", "7 a", "7 a {} c", "x\n", "6 f x {}", "6 f [1 2]\n\n"} {
		if w := Read(text, text); w.At != (Place{}) || len(w.Left) > 0 {
			t.Errorf("%q is read as %+v", text, w)
		}
	}
}
