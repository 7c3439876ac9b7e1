package delivery

import (
	"sync"
	"testing"
)

func TestGate_ClosesOnlyWhenAllIsSeen(t *testing.T) {
	var g Gate
	for range 2 {
		if !g.Enter() {
			t.Fatal("a new gate is closed")
		}
	}
	if g.CloseIf(1) {
		t.Error("closed though a request is on its way")
	}
	if !g.Enter() || !g.CloseIf(3) {
		t.Error("did not close though all was seen")
	}
	if g.Enter() {
		t.Error("entered a closed gate")
	}
	if g.CloseIf(3) {
		t.Error("closed a second time")
	}
	if sent := g.Close(); sent != 3 {
		t.Errorf("%d were sent, expected 3", sent)
	}
}

// Each sender that entered is counted before the gate closes, and none enters after.
func TestGate_CountsEachSender(t *testing.T) {
	for range 200 {
		var g Gate
		var entered [4]uint64
		var work sync.WaitGroup
		for i := range entered {
			work.Go(func() {
				for g.Enter() {
					entered[i]++
				}
			})
		}
		sent := g.Close()
		work.Wait()
		if sum := entered[0] + entered[1] + entered[2] + entered[3]; sum != sent {
			t.Fatalf("%d entered, and %d were counted", sum, sent)
		}
	}
}
