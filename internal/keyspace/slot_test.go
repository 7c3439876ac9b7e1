package keyspace_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestSlot_IsThatOfTheServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--cluster-enabled", "yes")
	keys := []string{"", "123456789", "redisson_lock__channel:{foo}", "ключ{тег}", "\x00\xff{\xfe}", strings.Repeat("long", 1000)}
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
		if got := keyspace.Slot(key); int64(got) != want {
			t.Errorf("Slot(%q) = %d, and %d on the server", key, got, want)
		}
	}
}
