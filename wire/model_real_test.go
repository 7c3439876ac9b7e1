package wire_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/internal/model"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/wire"
)

// real is the server that the model is compared with. Nobody else uses it.
type real struct {
	client  rueidis.Client
	redis   *redisio.Redis
	ears    [clients]rueidis.DedicatedClient
	replies chan answer
	sent    int // how many locks there have been

	mu    sync.Mutex // guards heard
	heard []string
	ended chan struct{}
}

type answer struct {
	tag   uint64
	reply redisio.Reply
}

// Replied implements redisio.Receiver.
func (r *real) Replied(tag uint64, reply redisio.Reply) { r.replies <- answer{tag, reply} }

// endMark is told on a channel of the test's own: all that was told before it is heard by then.
const endMark = "redisson_end"

func startReal(t *testing.T) *real {
	t.Helper()
	r := &real{client: redistest.Start(t).Client(t), replies: make(chan answer, 1), ended: make(chan struct{}, 1)}
	r.redis = redisio.New(r.client, 0)
	t.Cleanup(r.redis.Close)
	// A pattern, since PUBSUB NUMSUB does not count those.
	all := r.dedicated(t)
	if err := all.Do(t.Context(), all.B().Psubscribe().Pattern("redisson_*").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	for i := range r.ears {
		r.ears[i] = r.dedicated(t)
	}
	return r
}

func (r *real) dedicated(t *testing.T) rueidis.DedicatedClient {
	t.Helper()
	connection, giveBack := r.client.Dedicate()
	t.Cleanup(giveBack)
	connection.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		switch {
		case m.Pattern == "":
		case m.Channel == endMark:
			r.ended <- struct{}{}
		default:
			r.mu.Lock()
			defer r.mu.Unlock()
			r.heard = append(r.heard, m.Channel+" "+m.Message)
		}
	}})
	return connection
}

func (r *real) do(t *testing.T, words ...string) rueidis.RedisResult {
	t.Helper()
	result := r.client.Do(t.Context(), r.client.B().Arbitrary(words...).Build())
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", words, err)
	}
	return result
}

// locks are a lock, or the parts of one, as each of the clients sees them.
type locks struct {
	kinds   []model.Kind
	members [clients][]wire.Member
}

func (r *real) locks(kinds []model.Kind) *locks {
	r.sent++
	l := &locks{kinds: kinds}
	for c := range l.members {
		options := &wire.Options{Client: fmt.Sprintf("client-%d", c), Silence: silence, Announcement: announcement}
		for part, kind := range kinds {
			m := wire.Member{Lock: wire.New(wire.Kind(min(kind, model.ReadWrite)), fmt.Sprintf("lock-%d-%d", r.sent, part), options)}
			m.Fenced = kind == model.Fenced
			if kind == model.ReadPart {
				m.Mode = core.Shared
			}
			l.members[c] = append(l.members[c], m)
		}
	}
	return l
}

func (l *locks) field(o model.Owner) string { return l.members[o.Client][0].Owner(o.Term) }

func (l *locks) channel(part int, of model.Owner) string {
	if name := l.members[of.Client][part]; of.Term != 0 {
		return name.ChannelOf(of.Term)
	}
	return l.members[0][part].Channel
}

// channels are those of all parts: the lock's own, or a waiter's in a fair lock's queue.
func (l *locks) channels(of model.Owner) (names []string) {
	for part, kind := range l.kinds {
		if (kind == model.Fair) == (of.Term != 0) {
			names = append(names, l.channel(part, of))
		}
	}
	return names
}

// publication is a message of the model as Redis would tell it.
func (l *locks) publication(p model.Publication) string {
	return l.channel(p.Part, p.To) + " " + map[bool]string{true: "1", false: "0"}[p.All]
}

// run has a client's command carried out, and tells what was published.
func (r *real) run(t *testing.T, l *locks, c model.Client, part int, command core.Command) (core.Result, []string) {
	t.Helper()
	deadline := time.Now().Add(redistest.Limit)
	lock := l.members[c][max(part, 0)]
	if part >= 0 {
		command = lock.Command(command)
	}
	switch {
	case command.Kind == core.Renew:
		renewal := lock.Renewal(&command, deadline)
		renewal.To = r
		r.redis.Renew(renewal)
	default:
		call := lock.Call(&command, deadline)
		if len(l.kinds) > 1 && part < 0 {
			call = wire.AcquireAll(l.members[c], &command, deadline)
		}
		call.To = r
		r.redis.Run(call)
	}
	got := <-r.replies
	seq, result := lock.Read(got.tag, got.reply)
	if seq != command.Seq {
		t.Fatalf("the reply to command %d says that it is to %d", command.Seq, seq)
	}
	return result, r.published(t)
}

// published tells what has been published since it was last asked for.
func (r *real) published(t *testing.T) []string {
	t.Helper()
	r.do(t, "PUBLISH", endMark, "")
	select {
	case <-r.ended:
	case <-time.After(redistest.Limit):
		t.Fatal("nothing is heard")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	heard := r.heard
	r.heard = nil
	return heard
}

// listen has a client come to a channel, or leave it.
func (r *real) listen(t *testing.T, c model.Client, channel string, comes bool) {
	t.Helper()
	ear := r.ears[c]
	command := ear.B().Unsubscribe().Channel(channel).Build()
	if comes {
		command = ear.B().Subscribe().Channel(channel).Build()
	}
	if err := ear.Do(t.Context(), command).Error(); err != nil {
		t.Fatal(err)
	}
}

// await waits until so many listen to a channel.
func (r *real) await(t *testing.T, channel string, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d listen to %s", n, channel), func() bool {
		pair, err := r.do(t, "PUBSUB", "NUMSUB", channel).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		got, err := pair[1].AsInt64()
		return err == nil && int(got) == n
	})
}

// pass makes it so much later on the server: whatever ends, ends so much sooner.
func (r *real) pass(t *testing.T, d time.Duration) {
	t.Helper()
	r.do(t, "EVAL", `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[1]) then
    redis.call('DEL', key)
  elseif left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[1])
  end
  if redis.call('TYPE', key).ok == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, -ARGV[1], member)
    end
  end
end`, "0", strconv.FormatInt(d.Milliseconds(), 10))
}

// clear forgets a sequence.
func (r *real) clear(t *testing.T, s *sequence) {
	t.Helper()
	r.do(t, "FLUSHDB")
	channels := []model.Owner{{}}
	for c := range model.Client(clients) {
		for term := range uint64(terms) {
			channels = append(channels, model.Owner{Client: c, Term: term + 1})
		}
	}
	for _, channel := range channels {
		for c := range model.Client(clients) {
			if !s.model.Hears(c, model.Publication{To: channel}) {
				continue
			}
			for _, name := range s.locks.channels(channel) {
				r.listen(t, c, name, false)
			}
		}
	}
	r.published(t)
}
