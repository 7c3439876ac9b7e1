package judge

import (
	"testing"
	"time"
)

func TestWorse_IsMoreThanChance(t *testing.T) {
	for _, c := range []struct {
		a, b Leases
		want bool
	}{
		{Leases{20, 20, time.Minute}, Leases{20, 0, time.Minute}, true},
		{Leases{20, 5, time.Minute}, Leases{20, 0, time.Minute}, true},
		{Leases{20, 2, time.Minute}, Leases{20, 0, time.Minute}, false}, // chance
		{Leases{60, 40, time.Minute}, Leases{60, 40, time.Minute}, false},
		{Leases{60, 20, time.Minute}, Leases{60, 60, time.Minute}, false},
		{Leases{30, 20, 10 * time.Second}, Leases{40, 30, time.Minute}, true}, // it holds them for a shorter time
		{Leases{20, 0, time.Minute}, Leases{20, 0, 0}, false},
	} {
		if got := worse(c.a, c.b); got != c.want {
			t.Errorf("%v with %v: %v", c.a, c.b, got)
		}
	}
}
