package faults

import (
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// count gives the permits of a name that are free, those that have expired among them, and those
// that are taken. KEYS are the free and the taken ones.
const count = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('ZCARD', KEYS[2])
local taken = redis.call('ZCOUNT', KEYS[2], now + 1, '+inf')
return (tonumber(redis.call('GET', KEYS[1])) + all - taken) .. ' ' .. taken`

// permits gives the permits that Redis has soon after all clients have come to rest, when what was sent
// in the background has arrived, and removes them.
func (w *World) permits() (map[string]judge.Permits, error) {
	time.Sleep(300 * time.Millisecond)
	keys, err := w.server.list("KEYS", "*")
	if err != nil {
		return nil, err
	}
	found, gone := map[string]judge.Permits{}, []string{"DEL"}
	for _, key := range keys {
		switch {
		case key == string(traffic.Leased), strings.HasPrefix(key, string(traffic.Semaphore)+"-"):
			text, err := last(w.server.do("EVAL", count, "2", key, redisio.Taken(key)))
			if err != nil {
				return nil, err
			}
			free, taken, _ := strings.Cut(text, " ")
			var p judge.Permits
			if p.Free, err = strconv.Atoi(free); err != nil {
				return nil, err
			}
			if p.Taken, err = strconv.Atoi(taken); err != nil {
				return nil, err
			}
			found[key] = p
		case !strings.HasPrefix(key, "lockkeeper_calls:") && key != redisio.Taken(string(traffic.Leased)):
			continue
		}
		gone = append(gone, key)
	}
	if len(gone) > 1 {
		_, err = w.server.do(gone...)
	}
	return found, err
}
