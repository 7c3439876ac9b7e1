package inspect

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Patterns match what they match in Redis, also if they are not well-formed; but bytes of ranges are ASCII, since others
// are negative for Redis on some machines. A pattern that ends may be continued: asterisks around it match no less.
func TestPatterns_MatchAsInRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	random := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet string, most int) string {
		b := make([]byte, 1+random.IntN(most))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(b)
	}
	for range 300 {
		server.Do(t, "SET", text("aabbcz-]^[\\*?/{\xc3\xa9\n", 5), "1")
	}
	keys := server.Keys(t, "*")
	for i := range 3000 {
		pattern := text([]string{"abcz***???[[]]--^\\/{\n", "abc**??[]^\\\xc3\xa9"}[i%2], 9)
		got := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !matches(pattern, key) })
		if want := server.Keys(t, pattern); !slices.Equal(got, want) {
			t.Errorf("%q matches %q, in Redis %q", pattern, got, want)
		}
		for _, key := range got {
			if ends(pattern) && !matches("*"+pattern+"*", "x"+key+"x") {
				t.Errorf("%q matches %q, and not what contains it", pattern, key)
			}
		}
	}
}
