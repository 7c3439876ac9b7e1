package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets that are at most 1.6 % wide.
type histogram [40 * fine]uint32

const fine = 64

func (h *histogram) add(d time.Duration) {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-7, 0)
	h[min(shift*fine+int(n>>shift), len(h)-1)]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile is in microseconds.
func (h *histogram) quantile(q float64) float64 {
	total := 0
	for _, n := range h {
		total += int(n)
	}
	left := int(q * float64(total))
	for i, n := range h {
		if left -= int(n); left < 0 {
			shift := max(i/fine-1, 0)
			return float64(uint64(i-shift*fine)<<shift) / 1e3
		}
	}
	return 0
}
