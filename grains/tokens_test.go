package grains

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// A counter whose next token would not be exact is refused, and stays as it is: two activations would have the same token,
// and the same entry.
func TestStore_RefusesInexactTokens(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for counter, known := range map[string]int64{
		"9007199254740991": 0, "9007199254740993": 0, "9223372036854775806": 0, "-1": 0, "-9223372036854775808": 0, "5": 1<<53 - 1,
	} {
		s, err := newStore(redis.Client(t), "", "at "+counter, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		redis.Do(t, "HSET", s.lease("m"), "owner", "1")
		redis.Do(t, "SET", s.tokens(), counter)
		s.newest.Store(known)
		if token, err := s.register("account/a", "m", "", 0); !errors.Is(failed(err), lockkeeper.ErrRejected) {
			t.Errorf("behind %s and %d comes %d, %v", counter, known, token, err)
		}
		if now, err := redis.Do(t, "GET", s.tokens()).ToString(); now != counter {
			t.Errorf("%s has become %q, %v", counter, now, err)
		}
		if n, err := redis.Do(t, "HLEN", s.entries()).AsInt64(); n != 0 {
			t.Errorf("behind %s there are %d entries, %v", counter, n, err)
		}
	}
	s, _ := newStore(redis.Client(t), "", "last", time.Minute)
	redis.Do(t, "HSET", s.lease("m"), "owner", "1")
	redis.Do(t, "SET", s.tokens(), "9007199254740990")
	if token, err := s.register("account/a", "m", "", 0); token != 1<<53-1 || err != nil {
		t.Errorf("the last token is %d, %v", token, err)
	}
}
