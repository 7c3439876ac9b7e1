package wire_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/model"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// state is what a server knows of a lock: what its keys hold, and what ends when.
type state struct {
	values map[string]string
	times  map[string]time.Duration
}

func newState() state { return state{values: map[string]string{}, times: map[string]time.Duration{}} }

// compare finds out whether Redis and the model agree.
func (s *sequence) compare(got state) error {
	want := newState()
	for i := range s.model.Parts() {
		s.expect(want, i)
	}
	if a, b := sorted(got.values), sorted(want.values); a != b {
		return fmt.Errorf("Redis knows\n\t%s, and the model\n\t%s", a, b)
	}
	for _, what := range slices.Sorted(maps.Keys(want.times)) {
		near := s.near
		if strings.HasPrefix(what, "redisson_lock_queue") || strings.HasPrefix(what, "redisson_lock_timeout") {
			near = s.nearInQueue
		}
		if left, known := got.times[what]; !known || !near(want.times[what], left) {
			return fmt.Errorf("%s: %v are left, and in the model %v", what, left, want.times[what])
		}
	}
	for _, left := range want.times {
		// What ends together with the next jump of time has ended before it, or after.
		s.onEdge = s.onEdge || left > 0 && left%(10*time.Second) == 0
	}
	if len(got.times) != len(want.times) {
		return fmt.Errorf("these end in Redis: %v, and these in the model: %v", got.times, want.times)
	}
	return nil
}

func sorted(values map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, key+" = "+values[key])
	}
	return strings.Join(all, ", ")
}

// expect says what the keys of a part should be, as the model has it.
func (s *sequence) expect(want state, part int) {
	lock, name := s.model.Part(part), s.locks.members[0][part].Key
	readWrite := s.setup.Kinds[part] >= model.ReadWrite
	fields := map[string]string{}
	for _, h := range lock.Holders() {
		owner := s.locks.field(h.Owner)
		switch {
		case !readWrite:
			fields[owner] = strconv.Itoa(h.Exclusive)
			continue
		case h.Exclusive > 0:
			fields[owner+":write"] = strconv.Itoa(h.Exclusive)
		}
		if h.Shared > 0 {
			fields[owner] = strconv.Itoa(h.Shared)
		}
	}
	if !lock.Free() {
		if readWrite {
			fields["mode"] = map[bool]string{true: "write", false: "read"}[lock.Written()]
		}
		want.values[name] = sorted(fields)
		want.times[name] = lock.ExpiresAt() - s.now
	}
	for _, r := range lock.ReadLeases() {
		key := fmt.Sprintf("%s:%s:rwlock_timeout:%d", redisio.Holds(name), s.locks.field(r.Owner), r.N)
		want.values[key], want.times[key] = "1", r.Until-s.now
	}
	if writer, until := lock.Writer(); writer != (model.Owner{}) {
		key := redisio.Writer(name)
		want.values[key], want.times[key] = s.locks.field(writer), until-s.now
	}
	if n := lock.Tokens(); n > 0 {
		want.values[redisio.Token(name)] = strconv.FormatInt(n, 10)
	}
	var queue []string
	timeouts := map[string]string{}
	for _, w := range lock.Queue() {
		owner := s.locks.field(w.Owner)
		queue = append(queue, owner)
		timeouts[owner] = ""
		want.times[redisio.Timeouts(name)+" "+owner] = w.Timeout - s.model.Clock()
	}
	if len(queue) > 0 {
		want.values[redisio.Queue(name)] = strings.Join(queue, " ")
		want.values[redisio.Timeouts(name)] = sorted(timeouts)
		for _, key := range []string{redisio.Queue(name), redisio.Timeouts(name)} {
			want.times[key] = lock.QueueEnds() - s.now
		}
	}
}

// state tells what all keys hold, and what ends when.
func (r *real) state(t *testing.T) state {
	t.Helper()
	lines, err := r.do(t, "EVAL", `
local clock, all = redis.call('TIME'), {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, nil
  if kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'list' then
    value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 2, #value, 2 do
      value[i] = string.format('%.0f', value[i] - clock[1] * 1000 - math.floor(clock[2] / 1000))
    end
  else
    value = {redis.call('GET', key)}
  end
  all[#all + 1] = table.concat({key, kind, redis.call('PTTL', key), unpack(value)}, ' ')
end
return all`, "0").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	s := newState()
	for _, line := range lines {
		words := strings.Split(line, " ")
		key, kind, value := words[0], words[1], words[3:]
		if ttl := milliseconds(t, words[2]); ttl >= 0 {
			s.times[key] = ttl
		}
		switch kind {
		case "hash", "zset":
			fields := map[string]string{}
			for i := 0; i < len(value); i += 2 {
				if fields[value[i]] = value[i+1]; kind == "zset" {
					s.times[key+" "+value[i]], fields[value[i]] = milliseconds(t, value[i+1]), ""
				}
			}
			s.values[key] = sorted(fields)
		default:
			s.values[key] = strings.Join(value, " ")
		}
	}
	return s
}

func milliseconds(t *testing.T, text string) time.Duration {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n) * time.Millisecond
}
