package core_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
)

var (
	worldTime = flag.Duration("world.time", 2*time.Second, "how long to run random worlds of each kind")
	worldSeed = flag.Uint64("world.seed", 0, "run only the worlds with this seed; choose a kind with -run TestRandomWorlds/kind")
	worldTape = flag.String("world.tape", "", "run only the worlds with these choices, in hexadecimal, and tell what happens in it")
)

// kindsOfLocks are those that worlds are about.
var kindsOfLocks = []struct {
	name string
	kind core.Kind
}{
	{"plain and fenced", core.Kind{Tokens: 1}},
	{"fair", core.Kind{Queued: true}},
	{"readwrite", core.Kind{Shares: true}},
	{"multi", core.Kind{Parts: true, Tokens: 2}},
}

// TestRandomWorlds runs worlds with other choices every time. A failure tells the seed
// and the story of the simplest world that fails alike, with a tape to replay it.
func TestRandomWorlds(t *testing.T) {
	for _, k := range kindsOfLocks {
		t.Run(k.name, func(t *testing.T) { randomWorlds(t, &k.kind) })
	}
}

func randomWorlds(t *testing.T, kind *core.Kind) {
	t.Helper()
	switch {
	case *worldTape != "":
		bytes, err := hex.DecodeString(*worldTape)
		if err != nil {
			t.Fatal(err)
		}
		w, err := runWorld(kind, &tape{bytes: bytes}, true)
		t.Log(strings.Join(w.trace, "\n"))
		if err != nil {
			t.Fatal(err)
		}
	case *worldSeed != 0:
		tryWorld(t, kind, *worldSeed)
	default:
		n := 0
		for end := time.Now().Add(*worldTime); time.Now().Before(end); n++ {
			tryWorld(t, kind, rand.Uint64())
		}
		t.Logf("%d worlds", n)
	}
}

func tryWorld(t *testing.T, kind *core.Kind, seed uint64) {
	t.Helper()
	choices := randomTape(seed)
	if _, err := runWorld(kind, choices, false); err != nil {
		t.Logf("with -world.seed=%d: %v", seed, err)
		report(t, kind, choices.bytes, err)
	}
}

// FuzzWorlds lets the fuzzer make the choices.
func FuzzWorlds(f *testing.F) {
	for seed := range uint64(8) {
		for i := range kindsOfLocks {
			choices := randomTape(seed)
			if _, err := runWorld(&kindsOfLocks[i].kind, choices, false); err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), choices.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, bytes []byte) {
		kind := &kindsOfLocks[int(i)%len(kindsOfLocks)].kind
		if _, err := runWorld(kind, &tape{bytes: bytes}, false); err != nil {
			report(t, kind, bytes, err)
		}
	})
}

// That one actor owns a key is why the rules hold; see TestExploreNoticesTwoActorsOnOneKey.
func TestRandomWorldsNoticeTwoActorsOnOneKey(t *testing.T) {
	for seed := range uint64(1000) {
		w := newWorld(&core.Kind{Tokens: 1}, randomTape(seed), false)
		w.joinSibling()
		if err := w.live(); err != nil {
			t.Logf("world %d: %v", seed, err)
			return
		}
	}
	t.Fatal("nothing is wrong in a thousand worlds")
}

// runWorld lives through the world of a tape. It gives the violation, if there is one.
func runWorld(kind *core.Kind, choices *tape, tracing bool) (w *world, err error) {
	w = newWorld(kind, choices, tracing)
	return w, w.live()
}

// live lets happen what the tape says.
func (w *world) live() (err error) {
	choices := w.tape
	defer func() {
		switch broken := recover().(type) {
		case nil:
		case violation:
			err = broken
		default:
			if err = fmt.Errorf("panic: %v", broken); w.tracing {
				err = fmt.Errorf("%w\n%s", err, debug.Stack())
			}
		}
	}()
	for range 10 + choices.pick(120) {
		if choices.ended() {
			break
		}
		w.act()
		w.runUntil(w.now + oneOf(choices, ms, 0, ms, 5*ms, 30*ms, 30*ms, 200*ms, sec))
	}
	w.heal()
	return nil
}

// report shrinks a failing world and tells its story.
func report(t *testing.T, kind *core.Kind, failing []byte, err error) {
	t.Helper()
	rule := func(err error) string {
		var v violation
		if errors.As(err, &v) {
			return v.rule
		}
		return "panic"
	}
	enough := time.Now().Add(20 * time.Second)
	small := shrink(failing, func(bytes []byte) bool {
		if time.Now().After(enough) {
			return false
		}
		_, other := runWorld(kind, &tape{bytes: bytes}, false)
		return other != nil && rule(other) == rule(err)
	})
	w, err := runWorld(kind, &tape{bytes: small}, true)
	t.Fatalf("%s\n%v\nreplay with -world.tape=%x", strings.Join(w.trace, "\n"), err, small)
}
