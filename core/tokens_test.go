package core_test

import (
	"fmt"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// drew is the reply to an acquire that drew tokens; these are the last of each counter.
func drew(last ...int64) core.Result { return core.Result{Outcome: core.Done, Tokens: last} }

// fencing is a rig whose lock has n counters.
func fencing(t *testing.T, n int) *rig {
	t.Helper()
	cfg := rigConfig
	cfg.QueueLimit = 2000
	return newRigOf(t, &cfg, core.Kind{Tokens: n})
}

// draws checks how many tokens the acquire under way draws.
func (r *rig) draws(n int64) {
	r.t.Helper()
	if c := r.last(core.Acquire); c.Tokens != n {
		r.t.Fatalf("it draws %d tokens, not %d", c.Tokens, n)
	}
}

func TestTokensAreReservedForTheQueue(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.draws(1)
	r.reply(core.Acquire, refused(8*sec))
	r.acquire("b", fenced)
	r.acquire("c", fenced)
	r.subscribed()
	r.draws(3)
	r.forget()
	r.reply(core.Acquire, drew(7))
	r.wants("a: granted x1 until 9.898s, tokens [5]")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s, tokens [6]")
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "c: handed on x1 until 9.898s, tokens [7]", "unsubscribe")
}

func TestUsedUpTokensAreDrawnAnew(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.reply(core.Acquire, drew(5))
	r.acquire("b", fenced)
	r.acquire("c", fenced)
	r.forget()
	r.release("a")
	r.wants("a: over", "acquire #1 x1 for 10s") // there is none for b
	r.draws(2)
	r.reply(core.Acquire, drew(9)) // others have drawn 6 and 7, which they cannot have used
	r.wants("A: freed x0, handed on", "b: granted x1 until 9.898s, tokens [8]")
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "c: handed on x1 until 9.898s, tokens [9]")
}

func TestTokensAreNotKeptBeyondTheirTerm(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.acquire("b", fenced)
	r.reply(core.Acquire, refused(8*sec))
	r.subscribed()
	r.reply(core.Acquire, drew(2))
	r.cancel("b")
	r.release("a")
	r.reply(core.Release, done)
	r.acquire("c", fenced)
	r.forget()
	r.reply(core.Acquire, drew(5)) // 3 and 4 went to somebody else meanwhile
	r.wants("c: granted x1 until 9.898s, tokens [5]")
}

func TestReEntryHasTheSameToken(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", owner(7), fenced)
	r.acquire("b", fenced)
	r.reply(core.Acquire, drew(4))
	r.acquire("again", owner(7), fenced)
	r.draws(0)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("again: granted x2 until 9.898s, tokens [4]")
	if s := r.lock.Snapshot(); fmt.Sprint(s.Tokens) != "[4]" {
		t.Fatalf("the token is seen as %v", s.Tokens)
	}
}

func TestLostReplyWastesItsTokens(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.reply(core.Acquire, timeoutR)
	r.forget()
	r.tick(r.wakesWithin(25*ms, 50*ms))
	r.wants("acquire #1 x1 for 10s")
	r.draws(1)
	r.reply(core.Acquire, drew(2))
	if s := r.lock.Snapshot(); fmt.Sprint(s.Tokens) != "[2]" {
		t.Fatalf("the token is seen as %v", s.Tokens)
	}
}

func TestNewTenureUsesTheTokensThatAreLeft(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.reply(core.Acquire, refused(8*sec))
	r.acquire("b", fenced)
	r.acquire("c", fenced)
	r.subscribed()
	r.reply(core.Acquire, drew(3))
	r.now = 100 * ms
	r.forget()
	r.release("a")
	r.wants("a: over", "yield #1 subscribed")
	r.reply(core.Yield, kept)
	r.wants("A: freed x0, handed on", "b: granted x1 until 9.998s, tokens [2]")
}

func TestEveryCounterGivesATokenOfItsOwn(t *testing.T) {
	r := fencing(t, 2)
	r.acquire("a", fenced)
	r.reply(core.Acquire, refused(8*sec))
	r.acquire("b", fenced)
	r.subscribed()
	r.forget()
	r.reply(core.Acquire, drew(12, 40))
	r.wants("a: granted x1 until 9.898s, tokens [11 39]")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s, tokens [12 40]", "unsubscribe")
}

func TestReserveIsBounded(t *testing.T) {
	r := fencing(t, 1)
	for i := range 1200 {
		r.acquire(fmt.Sprint("a", i), fenced)
	}
	r.reply(core.Acquire, refused(8*sec))
	r.subscribed()
	r.draws(1000)
}

func TestLossTellsTheToken(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", fenced)
	r.reply(core.Acquire, drew(4))
	var told []int64
	r.do(func(l *core.Lock) {
		l.ForceRelease(r.now, core.Exclusive, "force")
		lock := *l
		for e, ok := lock.Effects(); ok; e, ok = lock.Effects() {
			if e.Kind == core.TellLost {
				told = e.Answer.Tokens
			}
		}
	})
	if fmt.Sprint(told) != "[4]" {
		t.Fatalf("the loss of %v is told", told)
	}
}

func TestPlainHoldsDrawNoTokens(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a")
	r.draws(0)
	r.reply(core.Acquire, refused(8*sec))
	r.acquire("b", fenced)
	r.acquire("c")
	r.acquire("d", fenced)
	r.subscribed()
	r.draws(2)
	r.forget()
	r.reply(core.Acquire, drew(8))
	r.wants("a: granted x1 until 9.898s")
	r.release("a")
	r.wants("a: over", "A: freed x0, handed on", "b: handed on x1 until 9.898s, tokens [7]")
	r.release("b")
	r.wants("b: over", "B: freed x0, handed on", "c: handed on x1 until 9.898s")
	r.release("c")
	r.wants("c: over", "C: freed x0, handed on", "d: handed on x1 until 9.898s, tokens [8]", "unsubscribe")
}

func TestWaiterForATokenDrawsOneIfThereIsNone(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a")
	r.reply(core.Acquire, done)
	r.acquire("b", fenced)
	r.forget()
	r.release("a")
	r.wants("a: over", "acquire #1 x1 for 10s")
	r.draws(1)
	r.reply(core.Acquire, drew(3))
	r.wants("A: freed x0, handed on", "b: granted x1 until 9.898s, tokens [3]")
}

func TestFencedReEntryOfAPlainHoldDrawsAToken(t *testing.T) {
	r := fencing(t, 1)
	r.acquire("a", owner(7))
	r.reply(core.Acquire, done)
	r.acquire("again", owner(7), fenced)
	r.draws(1)
	r.forget()
	r.reply(core.Acquire, drew(4))
	r.wants("again: granted x2 until 9.898s, tokens [4]")
	r.acquire("once more", owner(7), fenced)
	r.draws(0)
	r.forget()
	r.reply(core.Acquire, done)
	r.wants("once more: granted x3 until 9.898s, tokens [4]")
}
