package observe

import (
	"testing"
	"time"
)

// Of refusals that go on, the first is logged, and then one in a while. They are over when one of the channels is
// subscribed to.
func TestChannelRefusals_AreLoggedOnceInAWhile(t *testing.T) {
	var r channelRefusals
	first, again := 0, 0
	for i := range 1000 {
		one, more := r.refused(time.Duration(i)*time.Second, []string{string(rune(i))})
		if one {
			first++
		}
		if more {
			again++
		}
	}
	if first != 1 || again != 16 {
		t.Errorf("in 1000 s, %d and %d are logged", first, again)
	}
	if r.subscribed("another") || !r.subscribed(string(rune(7))) {
		t.Error("the refusals of the turn channel and of other channels are mixed up")
	}
	if one, _ := r.refused(time.Hour, []string{"a"}); !one || r.subscribed(string(rune(8))) {
		t.Error("what was before is not forgotten")
	}
	for i := range 2 * maxRefused {
		r.refused(time.Hour, []string{string(rune(i))})
	}
	if len(r.channels) != maxRefused {
		t.Errorf("%d channels are kept in mind", len(r.channels))
	}
}
