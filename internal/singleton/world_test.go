package singleton

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

type worldProxy struct {
	outbox Outbox[int]
	sent   int
	// toGate and fromGate are on their way, in order.
	toGate, fromGate []packet
	look             *Whereabouts
	looks            bool
	begun, refused   []int
}

type worldGate struct {
	ledger Ledger[int]
	// mail is what the instance has received and not begun.
	mail []packet
	// open: it receives and begins.
	open bool
}

// packet is a message, a probe or an answer.
type packet struct {
	to    Place
	proxy int
	m     Numbered[int]
	probe *Probe
	here  *GateState
	hint  bool
}

// The same rules hold in larger worlds, in which mailboxes also drop messages, and a lease that seemed to have ended goes on.
// Without kills, pauses and losses of what an instance leaves, nothing is refused, unless in a hurry.
func TestWorlds(t *testing.T) {
	t.Parallel()
	seldom := []doing{failsToLook, breaks, breaksBoth, closes, leavesNothing, kills, killsWithAnswers, pauses, drops, hesitates}
	begun, refused := 0, 0
	for seed := range uint64(worlds) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := &setting{senders: 2, messages: 200, terms: 30, times: 127, slow: 60, wait: time.Hour, buffer: 1000, size: 1 + random.IntN(100_000), drops: seed%16 < 7}
		if seed%3 == 0 {
			s.wait, s.buffer = time.Second, 30
		}
		if seed%4 < 2 {
			s.losses = 30
		}
		if seed%2 == 0 {
			s.kills, s.pauses = 5, 5
		}
		w := s.begin()
		var trace []string
		for range 1500 {
			moves := w.Moves(nil)
			if len(moves) == 0 || w.violation != nil {
				break
			}
			a := moves[random.IntN(len(moves))]
			if slices.Contains(seldom, a.does) && random.IntN(16) > 0 {
				continue
			}
			trace = append(trace, w.Describe(a))
			w.try(a)
		}
		for last := len(w.gates) - 1; last >= 0 && w.gates[last].open; { // it may have dropped the last message
			w.try(smallMove{closes, last})
			w.try(smallMove{leaves, last})
		}
		if err := w.Settle(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(trace[max(0, len(trace)-60):], "\n"))
		}
		for _, p := range w.proxies {
			begun, refused = begun+len(p.begun), refused+len(p.refused)
		}
	}
	if begun < refused || refused == 0 {
		t.Errorf("%d messages were begun and %d refused: the worlds test too little", begun, refused)
	}
	t.Logf("%d messages were begun, %d refused", begun, refused)
}

// worlds is how many random worlds there are.
const worlds = 400
