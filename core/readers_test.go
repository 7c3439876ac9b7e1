package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// readWrite is a rig whose lock can be shared.
func readWrite(t *testing.T) *rig {
	t.Helper()
	cfg := rigConfig
	cfg.QueueLimit = 9
	return newRigOf(t, &cfg, core.Kind{Shares: true})
}

// reading is a rig at 2 ms whose lock is shared by a, since its request at 0.
func reading(t *testing.T, options ...option) *rig {
	t.Helper()
	r := readWrite(t)
	r.acquire("a", append(options, shared)...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

// writing is a rig at 2 ms whose lock is held by a alone.
func writing(t *testing.T, options ...option) *rig {
	t.Helper()
	r := readWrite(t)
	r.acquire("a", options...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

// calmly is a rig like that whose readers need not look soon whether others wait.
func calmly(t *testing.T, options ...option) *rig {
	t.Helper()
	cfg := rigConfig
	cfg.Tenure, cfg.Opening = 10*sec, 20*sec
	r := newRigOf(t, &cfg, core.Kind{Shares: true})
	r.acquire("a", append(options, shared)...)
	r.now = 2 * ms
	r.reply(core.Acquire, done)
	r.forget()
	return r
}

// looked is the reply to a look.
func looked(others int) core.Result { return core.Result{Outcome: core.Done, Others: others} }

func TestReadersJoinWithoutACommand(t *testing.T) {
	r := reading(t)
	r.acquire("b", shared)
	r.acquire("c", shared, try)
	r.wants("b: handed on x1 until 9.898s", "c: handed on x1 until 9.898s")
	r.leave("a")
	r.leave("c")
	r.wants("a: over", "A: freed x0, handed on", "c: over", "C: freed x0, handed on")
	r.leave("b")
	r.wants("b: over", "release #1")
	r.reply(core.Release, done)
	r.wants("B: freed x0")
	r.idle()
}

func TestReadersWaitBehindAWriter(t *testing.T) {
	r := reading(t)
	r.acquire("w")
	r.acquire("b", shared)
	r.acquire("c", shared, try)
	r.wants("c: refused, held, ttl 9.896s")
	r.leave("a")
	r.wants("a: over", "acquire #1 x1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "w: granted x1 until 9.9s")
	r.release("w")
	r.wants("w: over", "acquire #1 r1 for 10s")
	r.reply(core.Acquire, done)
	r.wants("W: freed x0, handed on", "b: granted x1 until 9.9s")
}

func TestReadersJoinWhenTheWriterBeforeThemLeaves(t *testing.T) {
	r := reading(t)
	r.acquire("w", until(sec))
	r.acquire("b", shared)
	r.tick(50 * ms)
	r.wants()
	r.cancel("w")
	r.wants("w: refused, cancelled", "cancel: withdrawn 1", "b: handed on x1 until 9.898s")
}

func TestOtherReadersKeepALocalWriterOut(t *testing.T) {
	r := reading(t)
	r.acquire("w")
	r.leave("a")
	r.forget()
	r.reply(core.Acquire, refused(5*sec))
	// Our read hold is over all the same; the writer goes on waiting in a new term.
	r.wants("A: freed x0", "acquire #2 x1 for 10s", "subscribe")
	if c := r.last(core.Acquire); !c.Announce {
		t.Fatal("it does not say that a writer waits")
	}
}

func TestLookAfterATenureOfReaders(t *testing.T) {
	for _, c := range []struct {
		name   string
		result core.Result
		waits  []string
		tries  []string
	}{
		{"nobody waits", looked(0), []string{"b: handed on x1 until 9.898s"}, []string{"b: handed on x1 until 9.898s"}},
		{"others wait", looked(1), nil, []string{"b: refused, held"}},
		{"it fails", loadingR, []string{"b: handed on x1 until 9.898s"}, []string{"b: refused, unavailable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reading(t)
			r.now = 102 * ms
			r.acquire("b", shared)
			r.wants("look #1")
			r.reply(core.Look, c.result)
			r.wants(c.waits...)

			r = reading(t)
			r.now = 102 * ms
			r.acquire("b", shared, try)
			r.wants("look #1")
			r.reply(core.Look, c.result)
			r.wants(c.tries...)
		})
	}
}

func TestClosedToReaders(t *testing.T) {
	r := reading(t)
	r.now = 102 * ms
	r.acquire("b", shared)
	r.reply(core.Look, looked(2))
	r.forget()
	r.acquire("c", shared, try)
	r.wants("c: refused, held, ttl 9.796s")
	r.leave("a")
	r.wants("a: over", "yield #1")
	r.reply(core.Yield, yielded(2))
	r.wants("A: freed x0", "subscribe") // and b waits until the two have had their turns
	r.wakesWithin(302*ms, 302*ms)
}

func TestReadersGiveWayNowAndThen(t *testing.T) {
	r := reading(t)
	r.now = 1002 * ms // some wait without being seen
	r.acquire("b", shared)
	r.wants()
	r.leave("a")
	r.wants("a: over", "yield #1 open")
}

func TestReaderDoesNotJoinAtTheEndOfALease(t *testing.T) {
	r := calmly(t)
	r.tick(3 * sec)
	r.reply(core.Renew, timeoutR)
	r.now = 7 * sec
	r.forget()
	r.acquire("b", shared)
	r.wants("renew #1 now")
	r.reply(core.Renew, done)
	r.wants("b: handed on x1 until 16.898s")
}

func TestForceReleaseOfReaders(t *testing.T) {
	r := reading(t)
	r.acquire("b", shared)
	r.forget()
	r.forceIn(core.Exclusive) // there is no writer
	r.wants("force")
	r.reply(core.ForceRelease, done)
	r.wants("force: forced 0", "renew #1 now")
	r.forceIn(core.Shared)
	r.wants("a: lost, forced", "b: lost, forced", "a: over", "b: over", "force")
	r.leave("a")
	r.leave("b")
	r.wants("A: not freed, lost", "B: not freed, lost")
}

func TestDeadReaderLeaves(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("b", shared, owner(8))
	r.acquire("again", shared, owner(7))
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 9.9s")
	r.ownerGone(7)
	r.wants("a: over", "release #1 to r1 for 10s")
	r.reply(core.Release, done)
	r.leave("b")
	r.wants("b: over", "release #1")
}

func TestReadersCountAsOneWithTheirReEntriesOnTop(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("b", shared, owner(8))
	r.acquire("a2", shared, owner(7))
	r.wants("b: handed on x1 until 9.898s", "acquire #1 r2 for 10s")
	r.reply(core.Acquire, done)
	r.acquire("b2", shared, owner(8))
	r.wants("a2: granted x2 until 9.9s", "acquire #1 r3 for 10s")
	r.reply(core.Acquire, done)
	r.leave("a")
	r.wants("b2: granted x2 until 9.9s", "release #1 to r2 for 10s")
	r.reply(core.Release, done)
	r.leave("a")
	r.wants("A: freed x1", "a: over", "A: freed x0, handed on") // b's two are still two
	r.leave("b")
	r.wants("release #1 to r1 for 10s")
}

func TestLeaseOfReadersIsLostToAllOfThem(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("b", shared)
	r.acquire("again", shared, owner(7))
	r.forget()
	r.reply(core.Acquire, gone)
	r.wants("a: lost, gone", "b: lost, gone", "again: refused, lost", "a: over", "b: over")
	r.leave("b")
	r.wants("B: not freed, lost")
	r.idle()
}

func TestEveryoneAmongReaders(t *testing.T) {
	r := reading(t, owner(7))
	r.acquire("b", shared)
	r.acquire("again", shared, owner(7))
	r.acquire("w")
	r.leave("b")
	holders, pending := r.lock.Everyone()
	if len(holders) != 2 || holders[0].Ref != "a" || holders[1].Ref != "b" || len(pending) != 3 {
		t.Fatalf("the holders are %v, and %v await answers", holders, pending)
	}
}

// A re-entry that comes after its owner's last release is a request like any other.
func TestReEntryThatOnlyTriesComesTooLateAmongReaders(t *testing.T) {
	r := calmly(t, owner(7))
	r.acquire("b", shared, owner(8))
	r.tick(3 * sec)
	r.reply(core.Renew, done)
	r.tick(10100 * ms) // and the readers' tenure is over
	r.reply(core.Renew, done)
	r.acquire("c", shared)
	r.reply(core.Look, looked(1))
	r.cancel("c")
	r.acquire("b2", shared, owner(8))
	r.leave("a")
	r.acquire("again", shared, owner(7), try)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("b2: granted x2 until 19.998s", "a: over", "again: refused, held", "A: freed x0, handed on")
}

// Two requests of one owner that come too late are one hold in the end, not two.
func TestReEntriesThatComeTooLateBelongTogether(t *testing.T) {
	r := writing(t, owner(7))
	r.acquire("second", owner(7))
	r.release("a")
	r.release("a")
	r.acquire("third", shared, owner(7))
	r.acquire("fourth", shared, owner(7))
	r.reply(core.Acquire, done)
	r.reply(core.Release, done)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("A: freed x0, handed on", "third: granted x1 until 9.9s", "acquire #1 r2 for 10s")
	r.reply(core.Acquire, done)
	r.wants("fourth: granted x2 until 9.9s")
}
