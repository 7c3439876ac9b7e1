package observe

import (
	"testing"
	"time"
)

// What lasts long is logged at the limit, and then whenever it has doubled; the next one not before.
func TestLongTime_IsLoggedWheneverItHasDoubled(t *testing.T) {
	var l long
	const limit = time.Minute
	expect := func(since, want time.Duration) {
		t.Helper()
		at := l.due(since, limit)
		if at != want {
			t.Errorf("since %v it is logged at %v, want %v", since, at, want)
		}
		l = l.logged(at, since)
	}
	expect(10*time.Second, 70*time.Second)
	expect(10*time.Second, 130*time.Second)
	expect(30*time.Second, 250*time.Second)
	expect(800*time.Second, 860*time.Second)
}
