package actors

import (
	"sync"
	"testing"
)

func TestGateClosesOnlyWhenAllIsSeen(t *testing.T) {
	var g gate
	for range 2 {
		if !g.enter() {
			t.Fatal("a new gate is closed")
		}
	}
	if g.closeIf(1) {
		t.Error("closed though a request is on its way")
	}
	if !g.enter() || !g.closeIf(3) {
		t.Error("did not close though all was seen")
	}
	if g.enter() {
		t.Error("entered a closed gate")
	}
	if g.closeIf(3) {
		t.Error("closed a second time")
	}
	if sent := g.close(); sent != 3 {
		t.Errorf("%d were sent, expected 3", sent)
	}
}

// Whoever entered is counted before the gate closes, and nobody enters after.
func TestGateCountsEverybody(t *testing.T) {
	for range 200 {
		var g gate
		var entered [4]uint64
		var work sync.WaitGroup
		for i := range entered {
			work.Go(func() {
				for g.enter() {
					entered[i]++
				}
			})
		}
		sent := g.close()
		work.Wait()
		if sum := entered[0] + entered[1] + entered[2] + entered[3]; sum != sent {
			t.Fatalf("%d entered, and %d were counted", sum, sent)
		}
	}
}
