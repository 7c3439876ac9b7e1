// Package fleet_test tests singletons and grains in real processes, which proto.actor's remote connects: they hand over, and
// are killed, paused and disconnected. The remote has data races of its own, so the processes run without the race detector.
package fleet_test

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// onRedis returns a fleet with a Redis of its own.
func onRedis(t *testing.T) (*fleet, *redistest.Server) {
	redis := redistest.Start(t)
	f := newFleet(t, redis.URL())
	f.network.register(redis.Addr(), redisParty)
	return f, redis
}

// freePort returns a port that was free a moment ago. It is none that the kernel gives to outgoing connections.
func freePort(t *testing.T) (port int) {
	redistest.Eventually(t, "a free port", func() bool {
		port = 23000 + rand.IntN(9000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err == nil && listener.Close() == nil
	})
	return port
}

// begins waits until n more messages are begun, and until what was sent by then is begun or refused. An answer may be lost.
func (f *fleet) begins(n int) {
	f.t.Helper()
	f.increases("begins", n)
	sent := f.count("sent")
	redistest.Eventually(f.t, "the beginning of each message", func() bool { return f.count("begins")+f.count("refused") >= sent })
}

// expect ends a sender, and judges the history. At most refused messages may be refused for each fault.
func (f *fleet) expect(sender *process, faults, refused int) {
	f.t.Helper()
	sender.terminate()
	v := f.judge()
	if v.refused > faults*refused {
		f.t.Errorf("%d messages are refused after %d faults, %d may be", v.refused, faults, faults*refused)
	}
}

const lease = 2 * time.Second

// Nodes are stopped in turn, as by a rolling update: nothing is lost, begun twice or refused.
func TestFleet_HandsOver(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	candidate := settings{Role: "candidate", Watchdog: lease}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{Role: "sender", Watchdog: lease, Rate: 500, Burst: 1})
	const rounds = 15
	for range rounds {
		f.begins(100)
		f.leader().terminate()
		f.start(candidate)
	}
	f.begins(100)
	f.expect(sender, rounds, 0)
}

// Processes are killed: another instance starts when the lease has ended, and at most one window is refused.
func TestFleet_SurvivesKills(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	candidate := settings{Role: "candidate", Watchdog: lease}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{Role: "sender", Watchdog: lease, Rate: 250, Burst: 1})
	const rounds = 4
	for range rounds {
		f.begins(100)
		leader := f.leader()
		leader.kill()
		f.start(candidate)
	}
	f.begins(100)
	f.expect(sender, rounds, 64)
}

// Processes are paused for longer than their lease, with messages queued in front of the instance: when they continue,
// they handle none of them.
func TestFleet_SurvivesPauses(t *testing.T) {
	t.Parallel()
	f, _ := onRedis(t)
	candidate := settings{Role: "candidate", Watchdog: lease, Handling: 5 * time.Millisecond}
	f.start(candidate)
	f.start(candidate)
	sender := f.start(settings{Role: "sender", Watchdog: lease, Rate: 8, Burst: 10})
	const rounds = 3
	for range rounds {
		f.begins(100)
		leader := f.leader()
		leader.pause()
		f.leader() // another one
		f.begins(100)
		leader.resume()
	}
	f.begins(200)
	f.expect(sender, rounds, 64)
}
