package protocol_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redismodel"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// TestMain stops the redis-server and finds goroutines that were left behind.
func TestMain(m *testing.M) { redistest.Main(m) }

// real is the server that the model is compared with. No other test uses it.
type real struct {
	*redistest.Server
	client    rueidis.Client
	redis     *redisclient.Redis
	clients   [clients]rueidis.DedicatedClient // for subscriptions
	replies   replies
	published chan string // messages, as "channel payload"
}

type reply struct {
	seq uint64
	redisclient.Reply
}

type replies chan reply

// Replied implements redisclient.Receiver.
func (r replies) Replied(seq uint64, got redisclient.Reply) { r <- reply{seq, got} }

func startReal(t *testing.T) *real {
	t.Helper()
	server := redistest.Start(t)
	r := &real{Server: server, client: server.Client(t), replies: make(replies, 1), published: make(chan string, 100)}
	r.redis = redisclient.New(r.client, 0)
	t.Cleanup(r.redis.Close)
	dedicated := func() rueidis.DedicatedClient {
		connection, giveBack := r.client.Dedicate()
		t.Cleanup(giveBack)
		return connection
	}
	for i := range r.clients {
		r.clients[i] = dedicated()
	}
	listener := dedicated()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { r.published <- m.Channel + " " + m.Message }})
	// A pattern, since PUBSUB NUMSUB does not count those.
	if err := listener.Do(t.Context(), listener.B().Psubscribe().Pattern("redisson_*", "lockkeeper_turn:*").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a command on one of the members, or on all of them if part is negative.
func (r *real) run(t *testing.T, members []protocol.Member, part int, command lock.Command) lock.Result {
	t.Helper()
	deadline := time.Now().Add(redistest.Limit)
	member := members[max(part, 0)]
	if part >= 0 {
		command = member.Command(command)
	}
	if command.Kind == lock.Renew {
		renewal := member.Renewal(&command, deadline)
		renewal.To = r.replies
		r.redis.Renew(renewal)
	} else {
		call := member.Call(&command, deadline)
		if len(members) > 1 && part < 0 {
			call = protocol.AcquireAll(members, &command, deadline)
			if command.Kind == lock.Yield {
				call = protocol.YieldAll(members, &command, deadline)
			}
		}
		call.To = r.replies
		r.redis.Run(call)
	}
	got := <-r.replies
	if got.seq != command.Seq {
		t.Fatalf("the reply to command %d is one to %d", command.Seq, got.seq)
	}
	return member.Read(got.Reply)
}

// subscribe subscribes a client to a channel, or unsubscribes it.
func (r *real) subscribe(t *testing.T, c redismodel.Client, channel string, on bool) {
	t.Helper()
	command := r.client.B().Unsubscribe().Channel(channel).Build()
	if on {
		command = r.client.B().Subscribe().Channel(channel).Build()
	}
	if err := r.clients[c].Do(t.Context(), command).Error(); err != nil {
		t.Fatal(err)
	}
}

// pass simulates that time passes on the server: all TTLs and times are reduced by it.
func (r *real) pass(t *testing.T, d time.Duration) {
	t.Helper()
	r.Do(t, "EVAL", `
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[1]) then
    redis.call('DEL', key)
  elseif left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[1])
  end
  if string.find(key, '^lockkeeper_[a-z_]*_queue:') and redis.call('EXISTS', key) == 1 then
    local fields = redis.call('HGETALL', key)
    for i = 1, #fields, 2 do
      local earlier = function(t) return string.format('%.0f', t - ARGV[1] * 1000) end
      if fields[i] == 'open' then
        redis.call('HSET', key, 'open', earlier(fields[i + 1]))
      elseif fields[i] ~= 'turns' then
        local arrived, seen, rest = string.match(fields[i + 1], '^(%d+) (%d+) (.*)$')
        local since = string.match(rest, ' (%d%d%d%d+)$')
        if since then
          rest = string.gsub(rest, '%d+$', earlier(since))
        end
        redis.call('HSET', key, fields[i], earlier(arrived) .. ' ' .. earlier(seen) .. ' ' .. rest)
      end
    end
  end
  if string.find(key, '^lockkeeper_[a-z_]*_order:') then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      local ends = string.find(member, '^%-')
      redis.call('ZINCRBY', key, (ends and 1000 or -1000) * ARGV[1], member)
    end
  elseif redis.call('TYPE', key).ok == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      redis.call('ZINCRBY', key, -ARGV[1], member)
    end
  end
end`, "0", strconv.FormatInt(d.Milliseconds(), 10))
}

// state is the state of a lock on a server: its keys and their values, each with the rest of its TTL.
type state map[string]entry

type entry struct {
	value string
	left  time.Duration
}

const endless = -time.Millisecond

// endMark is a channel of the test: all messages before the one on it have been received by then.
const endMark = "redisson_end"

var dump = rueidis.NewLuaScript(`
redis.call('PUBLISH', ARGV[1], '')
local clock, all = redis.call('TIME'), {}
local function add(what, value, left)
  all[#all + 1], all[#all + 2], all[#all + 3] = what, value, string.format('%.0f', left)
end
-- The sorted set must agree with the hash.
local function check_order(key, client, arrived, seen, rest)
  local ttl, listens, reserved = string.match(rest, '^(%d+) %d+ %d+ %d %d+ (%d) ?(.*)$')
  local place = arrived
  if reserved == '-' then
    place = nil
  elseif reserved == '' and listens == '0' then
    place = arrived - 2^53
  end
  local order = string.gsub(key, '_queue', '_order')
  local ends, at = redis.call('ZSCORE', order, '-' .. client), redis.call('ZSCORE', order, client)
  if not ends or -ends ~= seen + ttl * 1000 or (tonumber(at or '') or 0) ~= (tonumber(place or '') or 0) or redis.call('PTTL', order) < 0 then
    add(order .. ' ' .. client, tostring(ends) .. ' ' .. tostring(at) .. ' instead of ' .. tostring(place), -1)
  end
end
-- Expired entries of the wait queue are left out: Redis keeps them until a script reads them.
local function wait_queue(key)
  local fields, order, known = redis.call('HGETALL', key), {}, false
  local now = clock[1] * 1000000 + clock[2]
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    local arrived, seen, rest = string.match(value, '^(%d+) (%d+) (.*)$')
    local left = -1
    if field == 'open' then
      left, value = math.floor((value - now) / 1000), ''
    elseif arrived then
      left, value = math.floor((seen - now) / 1000) + string.match(rest, '^%d+'), rest
    end
    local since = arrived and string.match(rest, ' (%d%d%d%d+)$')
    if since and left > 0 then
      value = string.gsub(rest, '%d+$', 'since')
      add(key .. ' ' .. field .. ' since', '', math.floor((since - now) / 1000))
    end
    if left > 0 or field == 'turns' then
      add(key .. ' ' .. field, value, left)
      known = true
    end
    if left > 0 and arrived then
      order[#order + 1] = arrived .. ' ' .. field
      check_order(key, field, arrived, seen, rest)
    end
  end
  table.sort(order)
  for i, word in ipairs(order) do
    order[i] = string.match(word, ' (.*)')
  end
  if known then
    add(key, table.concat(order, ' '), redis.call('PTTL', key))
  end
end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, ''
  local is_wait_queue, is_order = string.find(key, '^lockkeeper_[a-z_]*_queue:'), string.find(key, '^lockkeeper_[a-z_]*_order:')
  if is_wait_queue then
    wait_queue(key)
  elseif is_order then
    value = nil -- see check_order
  elseif kind == 'hash' then
    local fields = redis.call('HGETALL', key)
    for i = 1, #fields, 2 do
      add(key .. ' ' .. fields[i], fields[i + 1], -1)
    end
  elseif kind == 'zset' then
    local scores = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for i = 1, #scores, 2 do
      add(key .. ' ' .. scores[i], '', scores[i + 1] - clock[1] * 1000 - math.floor(clock[2] / 1000))
    end
  elseif kind == 'list' then
    value = table.concat(redis.call('LRANGE', key, 0, -1), ' ')
  else
    value = redis.call('GET', key)
  end
  if not is_wait_queue and not is_order then
    add(key, value, redis.call('PTTL', key))
  end
end
return all`)

// look returns the state of the server, and the messages since the last call.
func (r *real) look(t *testing.T) (s state, published []string) {
	t.Helper()
	words, err := dump.Exec(t.Context(), r.client, nil, []string{endMark}).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	s = state{}
	for i := 0; i < len(words); i += 3 {
		left, err := strconv.ParseInt(words[i+2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s[words[i]] = entry{words[i+1], time.Duration(left) * time.Millisecond}
	}
	for one := range r.published {
		if one == endMark+" " {
			break
		}
		published = append(published, one)
	}
	return s, published
}
