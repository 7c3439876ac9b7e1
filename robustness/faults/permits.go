package faults

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// count gives the permits of a name that are free, those that have expired among them, and those
// that are taken; the count of a latch is as those that are free. KEYS are the free and the taken ones.
const count = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('ZCARD', KEYS[2])
local taken = redis.call('ZCOUNT', KEYS[2], now + 1, '+inf')
return (tonumber(redis.call('GET', KEYS[1])) + all - taken) .. ' ' .. taken`

// permits gives what Redis has of synchronizers soon after all clients have come to rest, when what was
// sent in the background has arrived, and what should not be there any more; and removes it all.
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
		case traffic.Leased, traffic.Semaphore, traffic.Latch:
			text, err := last(s.do("EVAL", count, "2", key, redisio.Taken(key)))
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
			gone = append(gone, key, redisio.Counted(key), redisio.Taken(key))
		default:
			if strings.HasPrefix(key, "lockkeeper_calls:") {
				gone = append(gone, key)
			}
		}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "lockkeeper_counted:") && !slices.Contains(gone, key) {
			left = append(left, key+" is there, and its latch is open")
			gone = append(gone, key)
		}
	}
	for _, key := range gone { // in a cluster they are in many slots
		if _, err := s.do("DEL", key); err != nil {
			return nil, err
		}
	}
	return left, nil
}
