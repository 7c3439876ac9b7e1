package redisio

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestChannel(t *testing.T) {
	for name, want := range map[string]string{
		"n":     "redisson_lock__channel:{n}",
		"":      "redisson_lock__channel:{}",
		"a{b}c": "redisson_lock__channel:a{b}c",
		"a{b":   "redisson_lock__channel:a{b",
		"a}b":   "redisson_lock__channel:{a}b}",
		"{}x":   "redisson_lock__channel:{}x",
		"}{":    "redisson_lock__channel:}{",
		"ключ":  "redisson_lock__channel:{ключ}",
		"a b:c": "redisson_lock__channel:{a b:c}",
	} {
		if got := Channel(name); got != want {
			t.Errorf("Channel(%q) = %q, want %q", name, got, want)
		}
	}
}

// Names whose channel Redis Cluster puts into another slot than the name itself.
func TestChannelSlot(t *testing.T) {
	for name, same := range map[string]bool{
		"n": true, "a{b}c": true, "a{b": false, "a}b": false, "{}x": false, "a{}b{c}": false,
	} {
		if got := Slot(name) == Slot(Channel(name)); got != same {
			t.Errorf("%q and its channel in one slot: %v, want %v", name, got, same)
		}
	}
}

func TestSlotIsThatOfTheServer(t *testing.T) {
	s := redistest.Start(t, "--cluster-enabled", "yes")
	keys := []string{
		"", "123456789", "foo", "{}", "{}x", "a{}b", "a{}{b}", "a{b}c", "a{b}{c}", "a{b", "a}b", "}{a}", "{{a}}",
		"redisson_lock__channel:{foo}", "ключ{тег}", "\x00\xff{\xfe}", strings.Repeat("long", 1000),
	}
	for range 200 {
		random := make([]byte, rand.IntN(12))
		for i := range random {
			random[i] = "{}ab\x80"[rand.IntN(5)]
		}
		keys = append(keys, string(random))
	}
	for _, key := range keys {
		want, err := s.Do(t, "CLUSTER", "KEYSLOT", key).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		if got := Slot(key); int64(got) != want {
			t.Errorf("Slot(%q) = %d, the server says %d", key, got, want)
		}
	}
}
