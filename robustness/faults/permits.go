package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// count returns the numbers of free permits of a name, including expired ones, and of taken permits; the count of a
// latch is returned as free. KEYS are the keys of the free and the taken permits.
const count = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('ZCARD', KEYS[2])
local taken = redis.call('ZCOUNT', KEYS[2], now + 1, '+inf')
return (tonumber(redis.call('GET', KEYS[1])) + all - taken) .. ' ' .. taken`

// permits returns the state of the synchronizers in Redis soon after all clients came to rest, when background commands
// have arrived, and the keys that should no longer exist. It removes all of them.
func (w *World) permits() (found map[string]judge.Permits, left []string, err error) {
	time.Sleep(300 * time.Millisecond)
	found = map[string]judge.Permits{}
	for _, s := range w.servers() {
		more, err := s.permits(found)
		if err != nil {
			return nil, nil, err
		}
		left = append(left, more...)
	}
	return found, left, nil
}

func (s *server) permits(found map[string]judge.Permits) (left []string, err error) {
	keys, err := s.list("KEYS", "*")
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, key := range keys {
		switch kind, _, _ := strings.Cut(key, "-"); traffic.Kind(kind) {
		case traffic.Expirable, traffic.Semaphore, traffic.Latch:
			numbers, err := s.Do("EVAL", count, "2", key, keyspace.Taken(key))
			if err != nil {
				return nil, err
			}
			free, taken, _ := strings.Cut(numbers.Str, " ")
			var p judge.Permits
			if p.Free, err = strconv.Atoi(free); err != nil {
				return nil, err
			}
			if p.Taken, err = strconv.Atoi(taken); err != nil {
				return nil, err
			}
			found[key] = p
			gone = append(gone, key, keyspace.Counted(key), keyspace.Taken(key))
		default:
			if strings.HasPrefix(key, recordPrefix) {
				gone = append(gone, key)
			}
		}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "lockkeeper_counted:") && !slices.Contains(gone, key) {
			left = append(left, key+" exists, and its latch is open")
			gone = append(gone, key)
		}
	}
	for _, key := range gone { // one by one, since in a cluster they are in many slots
		if _, err := s.Do("DEL", key); err != nil {
			return nil, err
		}
	}
	return left, nil
}
