package console

import (
	"testing"
	"time"
)

// A rate is that of the last half minute, whatever was before.
func TestRates(t *testing.T) {
	var h history
	now := time.Now()
	if first := h.rates(now, counts{Grants: 1000}); first != nil {
		t.Errorf("the first look knows a rate: %+v", first)
	}
	if gap := h.rates(now.Add(time.Hour), counts{Grants: 1000 + 7200}); gap.Grants != 2 {
		t.Errorf("after an hour in which nobody looked there are %v grants a second, and were 2", gap.Grants)
	}
	var last *rates
	for i := range int64(40) {
		last = h.rates(now.Add(time.Hour+time.Duration(i+1)*time.Second), counts{Grants: 8200 + 10*(i+1), Losses: i + 1})
	}
	if last.Grants != 10 || last.Losses != 1 || last.Refusals != 0 || len(h.counted) > 32 {
		t.Errorf("40 s of 10 grants and a loss a second are %+v, by %d looks", last, len(h.counted))
	}
}
