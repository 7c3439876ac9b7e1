package main

import (
	"slices"
	"testing"

	registered "github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

// Each kind that has one key contends with Redisson, held and requested in each of its modes.
func TestKinds_AreAllShared(t *testing.T) {
	_, words := registered.Words()
	for word := range registered.Forms {
		words = append(words, word)
	}
	for _, word := range words {
		held := slices.ContainsFunc(kinds, func(k kind) bool { return k.held.kind == word })
		if wanted := slices.ContainsFunc(kinds, func(k kind) bool { return k.wanted.kind == word }); !held || !wanted {
			t.Errorf("%s: held in a case: %v, requested: %v", word, held, wanted)
		}
	}
}
