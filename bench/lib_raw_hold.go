package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// renewal renews all locks of raw on one goroutine.
type renewal struct {
	mu   sync.Mutex
	held []rueidis.LuaExec
}

var rawRenew = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`)

func (l *raw) hold(name string) error {
	owner := l.owner()
	if n, err := l.run(rawAcquire, []string{name}, owner); err != nil || n >= 0 {
		return errors.Join(err, fmt.Errorf("raw: %s is held", name))
	}
	r := &l.renewal
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, rueidis.LuaExec{Keys: []string{name}, Args: []string{owner, l.lease}})
	if len(r.held) == 1 {
		ms, _ := strconv.Atoi(l.lease)
		go r.run(l.client, time.Duration(ms)*time.Millisecond/3)
	}
	return nil
}

// run renews 100 locks in a batch of commands, and spreads the batches over the interval.
func (r *renewal) run(client rueidis.Client, every time.Duration) {
	for {
		start := time.Now()
		r.mu.Lock()
		held := r.held[:len(r.held):len(r.held)]
		r.mu.Unlock()
		const batch = 100
		for i := 0; i < len(held); i += batch {
			for _, answer := range rawRenew.ExecMulti(context.Background(), client, held[i:min(i+batch, len(held))]...) {
				if n, err := answer.AsInt64(); err != nil || n == 0 {
					fail(errors.Join(err, errors.New("raw: lost a lock")))
				}
			}
			time.Sleep(time.Until(start.Add(every * time.Duration(i+batch) / time.Duration(max(len(held), batch)))))
		}
	}
}
