package scripts_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// db is a Redis that the scripts are tested on, with clients that subscribe to the channels of locks.
type db struct {
	rueidis.Client
	// waiting are clients that subscribe to channels.
	waiting  [3]rueidis.DedicatedClient
	messages chan rueidis.PubSubMessage // has room for all messages of a test
	frozenAt time.Time                  // the fixed time of the scripts' clock; zero: it runs
}

// onRedis returns a real server. All scripts are loaded.
func onRedis(t *testing.T) *db {
	t.Helper()
	t.Parallel()
	return connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Shared(t).Addr()}})
}

// eachRedis is onRedis for tests in both protocols.
func eachRedis(t *testing.T, test func(t *testing.T, d *db)) {
	t.Helper()
	for name, resp2 := range map[string]bool{"RESP3": false, "RESP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, connect(t, rueidis.ClientOption{InitAddress: []string{redistest.Shared(t).Addr()}, AlwaysRESP2: resp2}))
		})
	}
}

func connect(t *testing.T, options rueidis.ClientOption) *db {
	t.Helper()
	options.DisableCache, options.DisableRetry, options.ForceSingleClient = true, true, true
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d := &db{Client: client, messages: make(chan rueidis.PubSubMessage, 1<<15)}
	dedicated := func() rueidis.DedicatedClient {
		connection, giveBack := d.Dedicate()
		t.Cleanup(giveBack)
		return connection
	}
	listener := dedicated()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { d.messages <- m }})
	// A pattern, since PUBSUB NUMSUB does not count those.
	if err := listener.Do(t.Context(), listener.B().Psubscribe().Pattern("redisson_*", "lockkeeper_*").Build()).Error(); err != nil {
		t.Fatalf("PSUBSCRIBE: %v", err)
	}
	// These clients listen on their turn channels; others do not.
	turns := dedicated()
	if err := turns.Do(t.Context(), turns.B().Subscribe().Channel(long("lockkeeper_turn:u"), long("lockkeeper_turn:v"), long("lockkeeper_turn:w")).Build()).Error(); err != nil {
		t.Fatalf("SUBSCRIBE: %v", err)
	}
	for i := range d.waiting {
		d.waiting[i] = dedicated()
	}
	for _, s := range scripts.All {
		for _, s := range []*scripts.Script{s, s.Sharded} {
			for _, s := range []*scripts.Script{s, withFixedTime(s)} {
				if sha := d.do(t, "SCRIPT", "LOAD", s.Source); sha != s.SHA {
					t.Errorf("%s: Redis computed the SHA %s, want %s", s.Name, sha, s.SHA)
				}
			}
		}
	}
	return d
}

// withFixedTime returns a script that takes the time, in µs, as its last argument.
func withFixedTime(s *scripts.Script) *scripts.Script {
	return scripts.New(s.Name, `
local real, micros = redis, table.remove(ARGV)
local redis = {pcall = real.pcall, error_reply = real.error_reply, call = function(command, ...)
  if command == 'TIME' then
    return {string.sub(micros, 1, -7), string.sub(micros, -6)}
  end
  return real.call(command, ...)
end}
`+s.Source, s.Reply)
}

func (d *db) run(t *testing.T, s *scripts.Script, keys, args []string) string {
	t.Helper()
	if !d.frozenAt.IsZero() {
		s, args = withFixedTime(s), append(slices.Clone(args), strconv.FormatInt(d.frozenAt.UnixMicro(), 10))
	}
	return d.do(t, slices.Concat([]string{"EVALSHA", s.SHA, strconv.Itoa(len(keys))}, keys, args)...)
}

// listen subscribes clients to a lock's channels: "foreign", "ours", which use the wait queue, or an owner in a fair
// lock's queue.
func (d *db) listen(t *testing.T, lock, listeners string) {
	t.Helper()
	for i, listener := range strings.Fields(listeners) {
		channels := "CHANNEL:" + listener
		switch listener {
		case "foreign":
			channels = "CHANNEL RWCHANNEL PERMITS"
		case "ours":
			channels = "CHANNEL RWCHANNEL PERMITS WAITERS"
		}
		client, words := d.waiting[i], longWords(strings.Fields("SUBSCRIBE "+names(lock).Replace(channels)))
		if err := client.Do(t.Context(), client.B().Subscribe().Channel(words[1:]...).Build()).Error(); err != nil {
			t.Fatalf("SUBSCRIBE: %v", err)
		}
	}
}

// published returns the messages on the channels of a lock since the last call, sorted: each as "<channel>=<payload>".
func (d *db) published(t *testing.T, lock string) string {
	t.Helper()
	const end = "redisson_end" // messages come in order: with the mark, all those before it are here
	d.do(t, "PUBLISH", end, lock)
	what := names(lock).Replace
	channelNames := strings.NewReplacer(what("RWCHANNEL"), "rwchannel", what("CHANNEL"), "channel", what("PERMITS"), "permits", what("LATCH"), "latch",
		"lockkeeper_turn", "turn")
	var published []string
	for m := range d.messages {
		channel, payload := short(m.Channel), short(m.Message)
		if channel == end && payload == lock {
			break
		}
		transfer, isTransfer := strings.CutSuffix(payload, " "+lock)
		if isTransfer || strings.Contains(channel, "{"+lock+"}") {
			published = append(published, channelNames.Replace(channel)+"="+strings.ReplaceAll(transfer, " ", "."))
		}
	}
	slices.Sort(published)
	return strings.Join(published, " ")
}

// do runs a command and returns its reply as text: strings and numbers as they are, an error
// with "-" before it, null as "(nil)", an array as "[a b]".
func (d *db) do(t *testing.T, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	return short(text(d.Do(ctx, d.B().Arbitrary(longWords(words)...).Build()).ToMessage()))
}

func text(m rueidis.RedisMessage, err error) string {
	if rueidis.IsRedisNil(err) {
		return "(nil)"
	}
	if err != nil {
		return "-" + err.Error()
	}
	if n, err := m.ToInt64(); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if s, err := m.ToString(); err == nil {
		return s
	}
	elements, _ := m.ToArray()
	texts := make([]string, len(elements))
	for i, e := range elements {
		texts[i] = text(e, e.Error())
	}
	return "[" + strings.Join(texts, " ") + "]"
}
