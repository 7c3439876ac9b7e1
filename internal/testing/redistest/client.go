package redistest

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// Client is the test's own client of the server, apart from those under test. It
// is created once, logs in if the server was started with --requirepass, uses a single
// connection, and is closed when the server stops.
func (s *Server) Client(t testing.TB) rueidis.Client {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		t.Fatal("redistest: a client of a server that was stopped")
	}
	if s.client == nil {
		c, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{s.Addr()},
			Password:          s.password(),
			DisableCache:      true,
			ForceSingleClient: true,
			PipelineMultiplex: -1,    // one connection
			ConnWriteTimeout:  Limit, // the time for a reply, too
			// No pings in the background, which Calls would count.
			Dialer:        net.Dialer{Timeout: Limit, KeepAlive: -1},
			ClientSetInfo: rueidis.DisableClientSetInfo,
		})
		if err != nil {
			t.Fatalf("redistest: client of %s: %v", s.Addr(), err)
		}
		s.client = c
	}
	return s.client
}

func (s *Server) password() string {
	if i := slices.Index(s.args, "--requirepass"); i >= 0 && i+1 < len(s.args) {
		return s.args[i+1]
	}
	return ""
}

// Do runs any command, e.g. s.Do(t, "GET", "key"), and returns its result. It gives
// up after [Limit].
func (s *Server) Do(t testing.TB, args ...string) rueidis.RedisResult {
	t.Helper()
	return run(s.Client(t), args...)
}

func run(c rueidis.Client, args ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	return c.Do(ctx, c.B().Arbitrary(args...).Build())
}

// must fails the test if a helper's own command failed.
func must[T any](t testing.TB, what string) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("redistest: %s: %v", what, err)
		}
		return v
	}
}

// Keys lists the keys that match a pattern, sorted.
func (s *Server) Keys(t testing.TB, pattern string) []string {
	t.Helper()
	return slices.Sorted(slices.Values(must[[]string](t, "KEYS")(s.Do(t, "KEYS", pattern).AsStrSlice())))
}

// Calls returns how often each command was called since the start or the last [Server.ResetStats], by its name in lower
// case: "evalsha", "config|resetstat". Commands called by scripts count, and so do commands of the test's own client
// (such as the "info" of an earlier Calls) and the pings of other clients that are idle.
func (s *Server) Calls(t testing.TB) map[string]int64 {
	t.Helper()
	info := must[string](t, "INFO commandstats")(s.Do(t, "INFO", "commandstats").ToString())
	calls := map[string]int64{}
	for _, match := range cmdstat.FindAllStringSubmatch(info, -1) {
		calls[strings.ToLower(match[1])] = must[int64](t, "INFO commandstats")(strconv.ParseInt(match[2], 10, 64))
	}
	return calls
}

var cmdstat = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// ResetStats resets the counts of [Server.Calls].
func (s *Server) ResetStats(t testing.TB) {
	t.Helper()
	s.MustDo(t, "CONFIG", "RESETSTAT")
}

// Subscribers returns how many clients are subscribed to a channel by its name.
func (s *Server) Subscribers(t testing.TB, channel string) int64 {
	t.Helper()
	numbers := must[map[string]int64](t, "PUBSUB NUMSUB")(s.Do(t, "PUBSUB", "NUMSUB", channel).AsIntMap())
	return numbers[channel]
}

// AwaitSubscribers waits until a channel has n subscribers.
func (s *Server) AwaitSubscribers(t testing.TB, channel string, n int64) {
	t.Helper()
	Eventually(t, fmt.Sprint(n, " subscribers of ", channel), func() bool { return s.Subscribers(t, channel) == n })
}

// ShardSubscribers is Subscribers for a shard channel of a cluster.
func (s *Server) ShardSubscribers(t testing.TB, channel string) int64 {
	t.Helper()
	numbers := must[map[string]int64](t, "PUBSUB SHARDNUMSUB")(s.Do(t, "PUBSUB", "SHARDNUMSUB", channel).AsIntMap())
	return numbers[channel]
}

// Channels lists the channels with subscribers, except the turn channels, on which clients are
// notified of transfers: a client keeps its own for as long as it runs.
func (s *Server) Channels(t testing.TB) []string {
	t.Helper()
	all := must[[]string](t, "PUBSUB CHANNELS")(s.Do(t, "PUBSUB", "CHANNELS").AsStrSlice())
	return slices.DeleteFunc(all, func(channel string) bool { return strings.HasPrefix(channel, "lockkeeper_turn:") })
}

// KillClients closes the connections of a type, "normal" or "pubsub", on the server's side, except the connection of
// the test's own client. It returns how many there were.
func (s *Server) KillClients(t testing.TB, kind string) int64 {
	t.Helper()
	return must[int64](t, "CLIENT KILL")(s.Do(t, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").AsInt64())
}

// KillClientsOf closes the connections that have a name.
func (s *Server) KillClientsOf(t testing.TB, name string) {
	t.Helper()
	list := must[string](t, "CLIENT LIST")(s.Do(t, "CLIENT", "LIST").ToString())
	for line := range strings.Lines(strings.TrimPrefix(list, "txt:")) { // a verbatim string of RESP3
		var id int64
		if _, err := fmt.Sscanf(line, "id=%d ", &id); err == nil && strings.Contains(line, " name="+name+" ") {
			s.Do(t, "CLIENT", "KILL", "ID", strconv.FormatInt(id, 10))
		}
	}
}

// ScriptFlush makes the server forget all scripts.
func (s *Server) ScriptFlush(t testing.TB) {
	t.Helper()
	s.MustDo(t, "SCRIPT", "FLUSH", "SYNC")
}

// MustDo runs a command that must succeed.
func (s *Server) MustDo(t testing.TB, args ...string) {
	t.Helper()
	if err := s.Do(t, args...).Error(); err != nil {
		t.Fatalf("redistest: %s: %v", strings.Join(args, " "), err)
	}
}
