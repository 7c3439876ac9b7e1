package core_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

func TestFixedLeaseIsNotRenewed(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(20*sec))
	r.now = 5 * ms
	r.reply(core.Acquire, done)
	r.wants("acquire #1 x1 for 20s", "a: granted x1 until 19.798s")
	r.wakes(19798 * ms)
}

func TestEndOfAFixedLeaseIsToldAndCleanedUp(t *testing.T) {
	r := held(t, fixed(2*sec))
	r.acquire("b")
	r.wakes(1978 * ms)
	r.tick(1978 * ms)
	r.wants("a: lost, expired", "a: over", "release #1")
	r.now += 2 * ms
	r.reply(core.Release, done)
	r.wants("acquire #2 x1 for 10s") // not before the old term is known to be gone
}

func TestShortLeasesHaveShortCalls(t *testing.T) {
	r := newRig(t)
	r.acquire("a", fixed(400*ms))
	if c := r.last(core.Acquire); c.Deadline != 100*ms {
		t.Fatalf("a call about a lease of 400 ms may last until %v", c.Deadline)
	}
}

func TestReEntryKeepsAFixedLeaseAsItIs(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7))
	r.wants("acquire #1 x2 for 1s") // what is left of it
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 1.978s")
	r.now = 1500 * ms
	r.release("a")
	r.wants("release #1 to x1 for 500ms")
}

func TestReEntryMayProlongAFixedLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7), fixed(5*sec))
	r.wants("acquire #1 x2 for 5s")
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 5.948s")
}

// A re-entry that prolongs the hold tells its new end; a shorter one is refused.
func TestReEntryWithALeaseMovesTheEndOfTheHold(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7), fixed(5*sec))
	r.acquire("shorter", owner(7), fixed(4*sec)) // fits now, and no more when it is its turn
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 5.948s", "shorter: refused, invalid")
	r.ensure("a", 4*sec)
	r.wants("ensure: ensured until 5.948s")
}

func TestReEntryMustFitTheHold(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  []option
		second []option
		want   string
	}{
		{"no options, watchdog", nil, nil, "acquire #1 x2 for 10s"},
		{"no options, fixed", []option{fixed(2 * sec)}, nil, "acquire #1 x2 for 1s"},
		{"no options, max hold", []option{maxHold(2 * sec)}, nil, "acquire #1 x2 for 10s"},
		{"the same lease", []option{fixed(2 * sec)}, []option{fixed(2 * sec)}, "acquire #1 x2 for 2s"},
		{"just as long as the hold", []option{fixed(2 * sec)}, []option{fixed(990 * ms)}, "acquire #1 x2 for 1s"},
		{"shorter than the hold", []option{fixed(2 * sec)}, []option{fixed(989 * ms)}, "again: refused, invalid"},
		{"a lease, watchdog", nil, []option{fixed(20 * sec)}, "again: refused, invalid"},
		{"a lease, max hold", []option{maxHold(2 * sec)}, []option{fixed(20 * sec)}, "again: refused, invalid"},
		{"a max hold, watchdog", nil, []option{maxHold(20 * sec)}, "again: refused, invalid"},
		{"the same max hold", []option{maxHold(2 * sec)}, []option{maxHold(2 * sec)}, "acquire #1 x2 for 10s"},
		{"a shorter max hold", []option{maxHold(2 * sec)}, []option{maxHold(sec)}, "again: refused, invalid"},
		{"a max hold beyond the lease", []option{fixed(2 * sec)}, []option{maxHold(sec)}, "acquire #1 x2 for 1s"},
		{"a max hold within the lease", []option{fixed(2 * sec)}, []option{maxHold(900 * ms)}, "again: refused, invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := held(t, append(c.first, owner(7))...)
			r.now = sec
			r.acquire("again", append(c.second, owner(7))...)
			r.wants(c.want)
		})
	}
}

// A re-entry that prolongs a fixed lease waits for the renewal of a shared one, which
// would cut it short if it arrived afterwards.
func TestReEntryProlongsAfterTheRenewalUnderWay(t *testing.T) {
	r := calmly(t, owner(7), fixed(20*sec))
	r.tick(3 * sec)
	r.wants("renew #1")
	r.acquire("longer", shared, owner(7), fixed(30*sec))
	r.wants()
	r.reply(core.Renew, done)
	r.wants("acquire #1 r2 for 30s")
	r.reply(core.Acquire, done)
	r.wants("longer: granted x2 until 32.698s")
}

// The end of a fixed lease is the hold's own: who joins moves the lease, not the hold.
func TestReEntryProlongsAFixedReaderAmongOthers(t *testing.T) {
	r := reading(t, owner(7), fixed(2*sec))
	r.acquire("b", shared)
	r.reply(core.Acquire, done)
	r.forget()
	r.acquire("longer", shared, owner(7), fixed(5*sec))
	r.wants("acquire #1 r2 for 10s")
	r.reply(core.Acquire, done)
	r.wants("longer: granted x2 until 4.95s")
	r.ensure("a", 4*sec)
	r.ensure("a", 5*sec)
	r.wants("ensure: ensured until 4.95s", "ensure: not done, invalid")
}

func TestRepeatedReEntryDoesNotProlongAFixedLease(t *testing.T) {
	r := held(t, owner(7), fixed(2*sec))
	r.now = sec
	r.acquire("again", owner(7))
	r.reply(core.Acquire, loadingR)
	r.forget()
	r.now = 1200 * ms
	r.tick(r.now)
	r.wants("acquire #1 x2 for 800ms")
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 1.978s")
}
