package locks_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// BenchmarkUncontended is one goroutine that takes and gives back one lock. Compare
// it with BenchmarkBareScripts of the same run; on an idle machine both measure how
// a processor wakes up, so pin them and Redis to one: taskset -c 0 go test -bench …
func BenchmarkUncontended(b *testing.B) {
	k := locktest.NewKey(b, redistest.Shared(b))
	s := locktest.Open(b, k.Server.URL(), lockkeeper.Config{})
	for b.Loop() {
		hold, err := s.Lock(k.LockName).Acquire(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if err := hold.Release(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareScripts sends the scripts of an acquire and a release and does nothing
// else: the floor of whatever goes to Redis for every lock.
func BenchmarkBareScripts(b *testing.B) {
	k := locktest.NewKey(b, redistest.Shared(b))
	client, err := lockkeeper.Connect(k.Server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	run := func(script *scripts.Script, keys []string, args ...string) {
		command := client.B().Evalsha().Sha1(script.SHA).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
		err := client.Do(context.Background(), command).Error()
		if e, isRedis := rueidis.IsRedisErr(err); isRedis && e.IsNoScript() {
			load := client.B().ScriptLoad().Script(script.Source).Build()
			err = client.Do(context.Background(), load).Error()
		}
		if err != nil && !rueidis.IsRedisNil(err) {
			b.Fatal(err)
		}
	}
	line, settings := redisio.Line(k.Name), "10000 10000 10000 1"
	for b.Loop() {
		run(scripts.Acquire, []string{k.Name}, "bare:1", "1", "30000", line, settings, "", "", "0")
		run(scripts.Release, []string{k.Name}, "bare:1", "0", "0", k.Channel, line, settings, "", "0")
	}
}
