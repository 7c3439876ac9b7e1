package fleet_test

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// store has a number for each actor, and refuses what an older instance writes: it compares the tokens. It is on a Redis of
// its own, which has no faults.
type store struct{ client rueidis.Client }

func openStore(url string) (s store) {
	if url == "" {
		return s
	}
	options, err := rueidis.ParseURL(url)
	if err == nil {
		s.client, err = rueidis.NewClient(options)
	}
	if err != nil {
		panic(err)
	}
	return s
}

var loadScript = rueidis.NewLuaScript(`
if tonumber(redis.call('HGET', KEYS[1], 'token') or 0) > tonumber(ARGV[1]) then
  return -1
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)`)

var saveScript = rueidis.NewLuaScript(`
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'value', ARGV[2])
return 1`)

func (s store) call(script *rueidis.Lua, name string, args ...int64) int64 {
	var texts []string
	for _, arg := range args {
		texts = append(texts, strconv.FormatInt(arg, 10))
	}
	n, err := script.Exec(context.Background(), s.client, []string{name}, texts).AsInt64()
	if err != nil {
		panic(err)
	}
	return n
}

// load returns the number of an actor, which only this instance may write from now on; -1 if a newer one has loaded it.
func (s store) load(name string, token int64) int64 {
	if s.client == nil {
		return 0
	}
	return s.call(loadScript, name, token)
}

// save reports whether it has written the number of an actor.
func (s store) save(name string, token, value int64) bool {
	return s.call(saveScript, name, token, value) == 1
}
