//go:build unix

package main

import (
	"math"
	"testing"
)

func TestTTL_IsRounded(t *testing.T) {
	for ms, want := range map[int64]string{-2: "-", -1: "never", 1234: "1.23s", 90_400: "1m30s", math.MaxInt64: "never"} {
		if got := ttl(ms); got != want {
			t.Errorf("%d ms: %s, want %s", ms, got, want)
		}
	}
}
