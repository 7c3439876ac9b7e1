package core_test

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestFreeLockIsGranted(t *testing.T) {
	r := newRig(t)
	r.now = 100 * ms
	r.acquire("a")
	r.wants("acquire #1 x1 for 10s")
	if c := r.last(core.Acquire); c.Deadline != 1100*ms {
		t.Fatalf("the command is due at %v", c.Deadline)
	}
	r.now = 150 * ms
	r.reply(core.Acquire, done)
	// Trust starts when the request was sent: 100 ms + 10 s − (1 % + 2 ms).
	r.wants("a: granted x1 until 9.998s")
	if s := r.lock.Snapshot(); !s.HeldHere || s.Count != 1 || s.Until != 9998*ms {
		t.Fatalf("it is seen as %+v", s)
	}
	r.wakes(3100 * ms)
}

func TestRefusalLeadsToSubscriptionAndAnotherTry(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.now = 2 * ms
	r.reply(core.Acquire, refused(8*sec))
	r.wants("acquire #1 x1 for 10s", "subscribe")
	r.now = 4 * ms
	r.subscribed()
	r.wants("acquire #1 x1 for 10s") // what was said before nobody has heard
	r.now = 6 * ms
	r.reply(core.Acquire, refused(8*sec))
	r.wants()
	r.now = 3 * sec
	r.signal()
	r.forget()
	r.now += 2 * ms
	r.reply(core.Acquire, done)
	r.wants("a: granted x1 until 12.898s", "unsubscribe")
}

func TestUnconfirmedSubscriptionIsAskedForAgain(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.now = 2 * ms
	r.reply(core.Acquire, refused(8*sec))
	r.forget()
	r.sleep(1002 * ms)
	r.wants("acquire #1 x1 for 10s")
	r.reply(core.Acquire, refused(7*sec))
	r.wants("subscribe")
}

func TestPollIsJittered(t *testing.T) {
	seen := map[time.Duration]bool{}
	for seed := range uint64(200) {
		cfg := rigConfig
		cfg.Seed = seed
		r := newRigWith(t, &cfg)
		r.acquire("a")
		r.reply(core.Acquire, refused(8*sec))
		seen[r.wakesWithin(500*ms, sec)] = true
	}
	if len(seen) < 150 {
		t.Fatalf("200 processes poll at %d different times only", len(seen))
	}
}

func TestEndOfTheOthersLeaseWakes(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.now = 2 * ms
	r.reply(core.Acquire, refused(200*ms))
	r.forget()
	r.wakes(203 * ms) // Redis has rounded the TTL down
	r.tick(203 * ms)
	r.wants("acquire #1 x1 for 10s")
}

func TestLockWithoutAnEndIsPolled(t *testing.T) {
	r := newRig(t)
	r.acquire("a", until(5*sec))
	r.now = 2 * ms
	r.reply(core.Acquire, refused(-1))
	r.wakesWithin(502*ms, 1002*ms)
	r.do(func(l *core.Lock) { l.Signal(r.now) })
	r.forget()
	r.tick(5 * sec)
	if got := r.said[len(r.said)-1]; got != "unsubscribe" {
		t.Fatalf("it says %q at last", got)
	}
	r.said = r.said[:1]
	r.wants("a: refused, timed out")
}

func TestMessageDuringATryMakesItsRefusalStale(t *testing.T) {
	r := contending(t)
	r.signal()
	r.wants("acquire #1 x1 for 10s")
	r.signal() // released again meanwhile, perhaps after the try
	r.wants()
	r.reply(core.Acquire, refused(8*sec))
	r.wants("acquire #1 x1 for 10s")
	r.reply(core.Acquire, refused(8*sec))
	r.wants()
	r.wakesWithin(r.now+500*ms, r.now+sec)
}

func TestReconnectLooksAgain(t *testing.T) {
	r := contending(t)
	r.now = 100 * ms
	r.subscribed()
	r.wants("acquire #1 x1 for 10s")
}

func TestSignalsMatterToThoseWhoWaitOnly(t *testing.T) {
	r := held(t)
	r.signal()
	r.subscribed()
	r.wants()
	r.release("a")
	r.forget()
	r.signal()
	r.reply(core.Release, done)
	r.forget()
	r.signal()
	r.subscribed()
	r.wants()
	r.idle()
}

func TestOneContenderForAllWaiters(t *testing.T) {
	r := newRig(t)
	r.acquire("a")
	r.acquire("b")
	r.acquire("c")
	r.wants("acquire #1 x1 for 10s")
	r.reply(core.Acquire, refused(8*sec))
	r.wants("subscribe")
	if n := r.lock.Snapshot().Waiters; n != 3 {
		t.Fatalf("%d wait", n)
	}
}

func TestQueueLimit(t *testing.T) {
	r := held(t)
	r.acquire("b")
	r.acquire("c")
	r.acquire("d")
	r.acquire("e")
	r.wants("e: refused, queue full")
	r.cancel("c")
	r.forget()
	r.acquire("f")
	r.wants()
}

func TestReEntryIsNotBoundByTheQueueLimit(t *testing.T) {
	r := held(t, owner(7))
	r.acquire("b")
	r.acquire("c")
	r.acquire("d")
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 10s")
}

func TestGrantThatComesTooLateIsOfNoUse(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(20*ms))
	r.acquire("b")
	r.wants("acquire #1 x1 for 20ms")
	r.now = 18 * ms // valid until 17.8 ms
	r.reply(core.Acquire, done)
	r.wants("a: refused, unavailable", "release #1")
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s")
}
