package controls

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// Control is a rule, how it is broken, and the traffic and the faults in which that shows.
type Control struct {
	Name string
	// Rule is the number of the rule in the design, or what else is promised.
	Rule, Broken string
	// Edits break the rule.
	Edits []Edit
	// Whole: without the edits the same run must stay green.
	Whole bool
	// Turns: the judge looks at the turns of processes, too. What breaks another rule may break
	// theirs as well, and that is not what is to be noticed.
	Turns  bool
	Plan   traffic.Plan
	Faults string
}

func ms(from, to int) traffic.Range {
	return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}
}

// plan has workers of some styles, and the usual times.
func plan(styles ...traffic.Style) traffic.Plan {
	return traffic.Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second, Styles: styles,
	}
}

// fast has Redis's clock run 0.8 % faster.
func fast(p traffic.Plan) traffic.Plan {
	p.ServerRate = 1.008
	return p
}

// within has all processes treat the library alike.
func within(host traffic.Host, p traffic.Plan) traffic.Plan {
	p.Host = host
	return p
}

// mixed has processes of different configurations.
func mixed(p traffic.Plan) traffic.Plan {
	p.Mixed = true
	return p
}

// busyOn has workers that want a lock most of the time.
func busyOn(kind traffic.Kind) traffic.Style {
	return traffic.Style{Kind: kind, Workers: 3, Hold: ms(0, 25), Think: ms(0, 30), Impatient: 0.1, GiveUp: ms(0, 50)}
}

// synchronizers has workers at synchronizers of all kinds.
func synchronizers() []traffic.Style {
	kept := toTheEnd(600 * time.Millisecond)
	kept.Kind = traffic.Leased
	return []traffic.Style{busyOn(traffic.Leased), kept, busyOn(traffic.Semaphore), busyOn(traffic.Latch)}
}

// toTheEnd has workers that keep a lock for as long as they may trust it.
func toTheEnd(lease time.Duration) traffic.Style {
	return traffic.Style{Kind: traffic.Plain, Workers: 2, Think: ms(0, 10), Fixed: lease, ToTheEnd: true}
}

// All are the controls.
var All = []Control{
	{
		Name: "trust from the reply", Rule: "1 trust starts when the request was sent", Broken: "it starts when the reply came",
		Edits: []Edit{{"internal/lock/lease.go", "until := o.sentAt + o.lease - Margin(o.lease)", "until := l.now + o.lease - Margin(o.lease)"}},
		Plan:  plan(toTheEnd(400 * time.Millisecond)), Faults: "late replies",
	},
	{
		Name: "no margin", Rule: "1 a lease is trusted for its TTL less a margin", Broken: "no margin, and a Redis whose clock runs 0.8 % faster",
		Edits: []Edit{{"internal/lock/config.go", "return lease/100 + 2*time.Millisecond", "return 0 * lease"}},
		Whole: true, Plan: fast(plan(toTheEnd(2 * time.Second))),
	},
	{
		Name: "loss not told", Rule: "2 loss is told", Broken: "the holder is not told",
		Edits: []Edit{{"holder.go", "(*Hold)(h).lose(lost(", "_ = (lost("}},
		Plan:  plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond)), Faults: "pause a client,partition",
	},
	{
		Name: "loss told late", Rule: "2 loss is told before another can get in", Broken: "the holder is told a second later",
		Edits: []Edit{{"actors/call.go", "		call.Holder.LeaseLost(a.Reason, a.Detail)", "		time.AfterFunc(time.Second, func() { call.Holder.LeaseLost(a.Reason, a.Detail) })"}},
		Plan:  plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond)), Faults: "pause a client,partition",
	},
	{
		Name: "acquire adds", Rule: "3 scripts are idempotent", Broken: "acquire adds to the hold count instead of setting it",
		Edits: []Edit{{"scripts/acquire.lua", "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])", "redis.call('HINCRBY', KEYS[1], ARGV[1], 1)"}},
		Plan: plan(busyOn(traffic.Reentrant), traffic.Style{
			Kind: traffic.Reentrant, Workers: 1, Hold: ms(0, 25), Think: ms(0, 30), Fixed: 700 * time.Millisecond,
		}), Faults: "lost replies",
	},
	{
		Name: "release of any owner's", Rule: "3, 5 a release names its term", Broken: "release deletes the lock, whosever it is",
		Edits: []Edit{{"scripts/release_unwanted.lua", "redis.call('HDEL', KEYS[1], ARGV[1]) == 1", "redis.call('DEL', KEYS[1]) == 1"}},
		Plan:  plan(busyOn(traffic.Plain)), Faults: "pause a client",
	},
	{
		Name: "renewal of any owner's", Rule: "3, 5 a renewal names its term", Broken: "renew takes any key for its own",
		Edits: []Edit{{"scripts/renew.lua", "redis.pcall('HEXISTS', key, ARGV[2 * i - 1])", "redis.pcall('EXISTS', key)"}},
		Plan:  plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(1500, 4000), Think: ms(0, 30)}), Faults: "DEL plain",
	},
	{
		Name: "grant after a cancel", Rule: "4 a grant to a cancelled request is released", Broken: "a grant that arrives after the request was cancelled is kept",
		Edits: []Edit{
			{"actors/call.go", "	if !call.complete(o) && a.Kind == lock.Granted {", "	if !call.complete(o) && a.Kind == lock.Granted && false {"},
			{"actors/call.go", "	if out.Kind == lock.Granted {\n		r.submit(acquire.about(OpRelease", "	if out.Kind == lock.Granted && false {\n		r.submit(acquire.about(OpRelease"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(0, 1), Think: ms(0, 2), Impatient: 1, GiveUp: ms(0, 1)}),
	},
	{
		Name: "no poll", Rule: "6 every wait has a bounded poll", Broken: "a waiter looks again only when a message comes",
		Edits: []Edit{
			{"internal/lock/acquire.go", "	l.wait.nextAt = l.now + l.jitter(l.poll())\n	if r.TTL >= 0 {", "	l.wait.nextAt = l.now + 1000*l.poll()\n	if false {"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 1, Hold: ms(200, 500), Think: ms(4000, 8000)}), Faults: "lost messages",
	},
	{
		Name: "hand-off after the end", Rule: "1, 7 nothing is granted after the lease's end", Broken: "the lease is handed on in memory, although it and the time for local hand-off are over",
		Edits: []Edit{
			{"internal/lock/end.go", "if l.holds.len() > 0 && l.now >= l.lease.until {", "if false {"},
			{"internal/lock/grant.go", "		l.hasTimeLeft()", "		true"},
			{"internal/lock/local_order.go", "	case l.now >= l.lease.handOffUntil || l.lease.draining:", "	case l.lease.draining:"},
		},
		Plan: plan(busyOn(traffic.Plain)), Faults: "pause a client",
	},
	{
		Name: "unwatched owner", Rule: "8 the holder's death releases", Broken: "owners are not watched",
		Edits: []Edit{{"actors/owners.go", "!s.rt.deliverSystem(pid, &actor.Watch{Watcher: s.pid})", "false"}},
		Plan:  plan(busyOn(traffic.Actor)),
	},
	{
		Name: "crash forgets", Rule: "9 a crash of the lock actor loses nothing", Broken: "a lock actor that is restarted begins with a free lock",
		Edits: []Edit{{"actors/lock_actor.go", "		s.stopAlarm() // after a crash", "		s.lock = s.variant.fresh()\n		s.stopAlarm() // after a crash"}},
		Plan:  plan(busyOn(traffic.Plain)), Faults: "crash lock actors",
	},
	{
		Name: "tokens stand still", Rule: "fencing tokens grow", Broken: "the counter of tokens is not used",
		Edits: []Edit{{"scripts/fenced_acquire.lua", "draw_tokens(ARGV[5], string.match(ARGV[4], '^(%d+)%+?(%d*)$'))", "tonumber(string.match(ARGV[4], '^%d+'))"}},
		Plan:  plan(busyOn(traffic.Fenced)),
	},
	{
		Name: "fair queue ignored", Rule: "fair locks go to who has asked first", Broken: "the free lock goes to whoever asks, past the queue",
		Edits: []Edit{
			{"scripts/sync_queue.lua", "    goes = first and not holder and may_take", "    goes = not holder and may_take"},
			{"scripts/sync_queue.lua", "    if #stay == 0 and not holder and may_take then\n      grant(owner)\n    else", "    if not holder and may_take then\n      grant(owner)\n    else"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Fair, Workers: 4, Hold: ms(20, 60), Think: ms(0, 10)}),
	},
	{
		Name: "line from its end", Rule: "processes have their turns one after another", Broken: "the line is served from its end",
		Edits: []Edit{{"scripts/wait_queue.lua", "return x < y or", "return x > y or"}},
		Turns: true, Whole: true, Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 4, Hold: ms(20, 25), Think: ms(0, 5)}),
	},
	{
		Name: "short transfer", Rule: "a lease is as long as its holder thinks", Broken: "a transfer is shorter than the one who gets it trusts it to be",
		Edits: []Edit{
			{"scripts/wait_queue.lua", "place.mode, place.ttl, joins)", "place.mode, 100, joins)"},
			{"scripts/release_to_next.lua", "take(KEYS[1], ttl, client", "take(KEYS[1], 100, client"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(150, 400), Think: ms(0, 30)}), Faults: "nothing reaches Redis",
	},
	{
		Name: "reader beside a writer", Rule: "a writer is alone", Broken: "readers are let in whatever the mode",
		Edits: []Edit{{"scripts/read_write_set.lua", "(free or not ours and value_of(hash, 'mode') == 'read')", "true"}},
		Plan:  plan(busyOn(traffic.ReadWrite)),
	},
	{
		Name: "asleep", Rule: "1 the clock goes on while the machine sleeps", Broken: "the clock stands still",
		Edits: []Edit{{"actors/runtime.go", "boottime.For(system)", "boottime.New()"}},
		Plan:  fast(plan(busyOn(traffic.Plain), toTheEnd(800*time.Millisecond))), Faults: "suspend the clients",
	},
	{
		Name: "slow to wake", Rule: "2 loss is told on waking", Broken: "timers are not set again when the machine wakes up",
		Edits: []Edit{{"actors/runtime.go", "r.present.Beat(r.beat)", "r.present.Beat(func() {})"}},
		Plan:  fast(plan(toTheEnd(3 * time.Second))), Faults: "suspend the clients",
	},
	{
		Name: "lines on our goroutines", Rule: "13 the host is not trusted to behave", Broken: "the logger is called by whoever has a line",
		Edits: []Edit{{"internal/host/host.go", "	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args...) }, h.logsDropped)", "	h.logger.Log(context.Background(), level, message, args...)"}},
		Plan:  within(traffic.Host{Logger: traffic.Blocks}, plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond))), Faults: "partition,crash lock actors,restart empty",
	},
	{
		Name: "panic at risk", Rule: "13 the host is not trusted to behave", Broken: "a panic of an at-risk function is not recovered",
		Edits: []Edit{{"internal/host/host.go", "		defer h.Recover(what + \" panicked\")\n", "		_ = what\n"}},
		Plan:  within(traffic.Host{AtRisk: traffic.Panics}, plan(busyOn(traffic.Plain), traffic.Style{Kind: traffic.Fenced, Workers: 3, Hold: ms(500, 1500), Think: ms(0, 30)})), Faults: "nothing comes back,pause Redis",
	},
	{
		Name: "unbounded loan", Rule: "14 every call is bounded", Broken: "a caller runs a command that takes longer than it would wait",
		Edits: []Edit{{"actors/sending.go", " || !lender.mayRun(s.lock.LeaseUntil()-s.now)", ""}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: 1500 * time.Millisecond, Idle: time.Second,
			Styles: []traffic.Style{{Kind: traffic.Plain, Workers: 1, Hold: ms(0, 5), Think: ms(10, 60), Impatient: 1, GiveUp: ms(0, 50)}},
		}, Faults: "new connections hear nothing",
	},
	{
		Name: "demoted for ever", Rule: "11 errors are sorted", Broken: "a connection to a server that has become a replica is kept",
		Edits: []Edit{{"redisio/reconnect.go", "len(c.Keys) > 0 && byReplica", "false && byReplica"}},
		Plan:  plan(busyOn(traffic.Plain)), Faults: "change of roles",
	},
	{
		Name: "one watchdog for all", Rule: "a lease is as long as its holder thinks", Broken: "renewals take everybody's watchdog to be a second",
		Edits: []Edit{{"scripts/renew.lua", "redis.call('PEXPIRE', key, ARGV[2 * i])", "redis.call('PEXPIRE', key, 1000)"}},
		Plan:  mixed(plan(busyOn(traffic.Plain), traffic.Style{Kind: traffic.Plain, Workers: 1, Hold: ms(1500, 2500), Think: ms(0, 30)})), Faults: "nothing reaches Redis",
	},
	{
		Name: "copies count", Rule: "18 only what did not reach its requester is given back", Broken: "any copy of a grant that becomes a dead letter is given back",
		Edits: []Edit{{"actors/guardian.go", "	<-g.started ", `	r.actor.EventStream.Subscribe(func(event any) {
		if letter, ok := event.(*actor.DeadLetterEvent); ok {
			if m, ok := letter.Message.(*messages.Acquired); ok {
				r.deliver(r.guardian, &messages.Release{Lock: m.Lock, HoldId: m.HoldId})
			}
		}
	})
	<-g.started `}},
		Plan: plan(busyOn(traffic.Actor)),
	},
	{
		Name: "release on a majority", Rule: "4 what is released leaves nothing behind", Broken: "a server that failed at a release is not asked again",
		Edits: []Edit{{"internal/backend/majority.go", "m.free(free, func(on *member) { m.retryReleaseOn(on, c) }", "m.free(free, func(*member) {}"}},
		Plan: traffic.Plan{
			Watchdog: 20 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Servers: 3,
			Styles: []traffic.Style{{Kind: traffic.Spread, Workers: 3, Hold: ms(0, 25), Think: ms(0, 50), Impatient: 0.1, GiveUp: ms(0, 100)}},
		}, Faults: "a server is out of reach",
	},
	{
		Name: "channel as a key", Rule: "15 KEYS are keys", Broken: "the channel is among the keys of a script",
		Edits: []Edit{{"internal/protocol/reentrant.go", "call.Keys = l.hash()", "call.Keys = []string{l.Key, l.Channel}"}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Servers: 2, Cluster: true,
			Styles: []traffic.Style{busyOn(traffic.Plain), busyOn(traffic.Reentrant), busyOn(traffic.Actor)},
		}, Faults: "a slot is half moved",
	},
	{
		Name: "replicas are not waited for", Rule: "with Config.Replicas, a replica that takes over knows what is trusted", Broken: "a grant counts although no replica has confirmed it",
		Edits: []Edit{{"redisio/replicas.go", "case n < p.replicas:", "case n < 0:"}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
			Servers: 3, Cluster: true, Replicas: 1, Lag: 10 * time.Millisecond, Confirm: 1,
			Styles: []traffic.Style{traffic.Freshly, busyOn(traffic.Semaphore)},
		}, Faults: "a master is killed",
	},
	{
		Name: "an actor per kind", Rule: "12 one actor owns one key", Broken: "a plain and a fenced lock of one name have an actor each",
		Edits: []Edit{{"actors/table.go", "	return lockKey{name: name}\n", "	return lockKey{name: name, made: ofServers + 1 + making(kind)}\n"}},
		Plan:  plan(busyOn(traffic.Faces)),
	},
	{
		Name: "a lost reply counts twice", Rule: "permits are neither made nor lost", Broken: "a command that was carried out is carried out again",
		Edits: []Edit{{"scripts/once.lua", "if last == number then", "if false then"}},
		Whole: true, Plan: plan(synchronizers()...), Faults: "lost replies",
	},
	{
		Name: "permits are free too early", Rule: "1 nobody gets what another trusts", Broken: "a permit is taken for expired before its lease is over",
		Edits: []Edit{
			{"scripts/expirable_acquire.lua", "redis.call('ZCOUNT', KEYS[2], 0, now)", "redis.call('ZCOUNT', KEYS[2], 0, now + 300)"},
			{"scripts/expirable_acquire.lua", "redis.call('ZRANGE', KEYS[2], 0, now, 'BYSCORE'", "redis.call('ZRANGE', KEYS[2], 0, now + 300, 'BYSCORE'"},
		},
		Plan: plan(synchronizers()...),
	},
	{
		Name: "an id counts twice", Rule: "a latch opens when all have counted down", Broken: "who counts down by an id is counted again each time",
		Edits: []Edit{{"scripts/latch_count_down.lua", "if not seen[id] and not (known and redis.call('SISMEMBER', KEYS[3], id) == 1) then", "if not seen[id] then"}},
		Whole: true, Plan: plan(busyOn(traffic.Latch)),
	},
	{
		Name: "no poll at a latch", Rule: "6 every wait has a bounded poll", Broken: "who waits for a latch looks again only when a message comes",
		Edits: []Edit{{"internal/semaphore/take.go", "if p.wait.nextAt = p.now + p.jitter(p.cfg.Poll); p.wait.again {", "if p.wait.nextAt = p.now + 1000*p.cfg.Poll; p.wait.again {"}},
		Plan:  plan(busyOn(traffic.Latch)), Faults: "lost messages",
	},
	{
		Name: "half a MultiLock", Rule: "a MultiLock has all of its members", Broken: "only the first member is taken",
		Edits: []Edit{
			{"scripts/acquire_all.lua", "for i = 1, #KEYS / 3 do\n  local lock = {", "for i = 1, 1 do\n  local lock = {"},
		},
		Plan: plan(busyOn(traffic.Multi)),
	},
	{
		Name: "a cancel takes long", Rule: "14 every call is bounded", Broken: "each cancelled request costs the lock actor a millisecond",
		Edits: []Edit{{"actors/lock_actor.go", "		s.handle(call, func(l decider, now lock.Instant) { l.Cancel(now, id, 0, call) })", "		time.Sleep(time.Millisecond)\n		s.handle(call, func(l decider, now lock.Instant) { l.Cancel(now, id, 0, call) })"}},
		Plan:  traffic.CancelsPlan(),
	},
	{
		Name: "a reservation stays", Rule: "a waiter that gives up wakes those behind it", Broken: "a MultiLock that gives up does not pass on what was kept for it",
		Edits: []Edit{{"scripts/wait_queue.lua", "return line.leave() and reserved and not", "return line.leave() and false and not"}},
		Whole: true, Plan: traffic.MembersPlan(),
	},
	{
		Name: "late renewals", Rule: "a lease is kept as well as a peer keeps it", Broken: "a lease is renewed shortly before its end",
		Edits: []Edit{{"internal/lock/lease.go", "l.lease.renewAt = o.sentAt + l.cfg.RenewAfter(l.now-o.sentAt)", "l.lease.renewAt = o.sentAt + l.cfg.Watchdog*95/100"}},
		Plan:  traffic.ComputingPlan(),
	},
	{
		Name: "numbers are rounded", Rule: "numbers are exact, or refused", Broken: "tokens that a double does not hold are given out",
		Edits: []Edit{{"scripts/tokens.lua", "if token >= n and math.max(token, above + n) <= MOST then", "if token >= n then"}},
		Whole: true, Plan: traffic.EdgesPlan(), Faults: "numbers near the edges",
	},
	{
		Name: "whoever holds it", Rule: "a forced release frees the holder that was seen, or none", Broken: "a forced release frees whoever holds the lock when it arrives",
		Edits: []Edit{{"scripts/force_release.lua", "for i = 2, #ARGV do", "ARGV[2] = redis.call('HRANDFIELD', KEYS[1]) or ''\nfor i = 2, #ARGV do"}},
		Whole: true, Plan: traffic.ForcedPlan(), Faults: "late forced release",
	},
	{
		Name: "any hash is a lock", Rule: "a key that is not ours is never deleted, disclosed or waited for", Broken: "a hash is not checked for the form of a lock",
		Edits: []Edit{{"scripts/ours.lua", "  if not ours or #fields > 2 and", "  if false and not ours or false and"}},
		Whole: true, Plan: traffic.ForeignPlan(), Faults: "foreign hash",
	},
}

// Named finds controls by their names, separated by commas; all of them for "all".
func Named(names string) ([]Control, error) {
	if names == "all" {
		return All, nil
	}
	var chosen []Control
next:
	for _, name := range strings.Split(names, ",") {
		for _, c := range All {
			if c.Name == strings.TrimSpace(name) {
				chosen = append(chosen, c)
				continue next
			}
		}
		return nil, fmt.Errorf("there is no control %q", name)
	}
	return chosen, nil
}
