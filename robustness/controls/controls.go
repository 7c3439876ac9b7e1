package controls

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// Control is a rule, how it is broken, and the traffic and faults that expose it.
type Control struct {
	Name string
	// Rule is the rule that the edits break, in one sentence.
	Rule string
	// Broken says how the rule is broken.
	Broken string
	// Edits break the rule.
	Edits []Edit
	// GreenWithoutEdits: the same run without the edits must pass.
	GreenWithoutEdits bool
	// Turns: the judge checks the turns of processes, too. The edits of other controls may break
	// turns as well, which does not count as detection.
	Turns  bool
	Plan   traffic.Plan
	Faults string
}

// All are the controls.
var All = []Control{
	{
		Name: "trust from the reply", Rule: "1 trust starts when the request was sent", Broken: "it starts when the reply came",
		Edits: []Edit{{"internal/lock/lease.go",
			"until := machine.TrustedUntil(o.sentAt, o.lease)",
			"until := machine.TrustedUntil(now, o.lease)"}},
		Plan: plan(toTheEnd(400 * time.Millisecond)), Faults: "late replies",
	},
	{
		Name: "no margin", Rule: "1 a lease is trusted for its TTL less a margin", Broken: "no margin, and a Redis whose clock runs 0.8 % faster",
		Edits:             []Edit{{"internal/machine/config.go", "return lease/100 + 2*time.Millisecond", "return 0 * lease"}},
		GreenWithoutEdits: true, Plan: fast(plan(toTheEnd(2 * time.Second))),
	},
	{
		Name: "loss not notified", Rule: "2 the holder is notified of a loss", Broken: "the holder is not notified",
		Edits: []Edit{{"holder.go", "(*Hold)(h).lose(lostError(", "_ = (lostError("}},
		Plan:  plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond)), Faults: "pause a client,partition",
	},
	{
		Name: "loss notified late", Rule: "2 the holder is notified before another can acquire the lock",
		Broken: "the holder is notified a second later",
		Edits: []Edit{{"internal/request/call.go",
			"		call.Holder.LeaseLost(a.Reason, a.Detail)",
			"		time.AfterFunc(time.Second, func() { call.Holder.LeaseLost(a.Reason, a.Detail) })"}},
		Plan: plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond)), Faults: "pause a client,partition",
	},
	{
		Name: "acquire adds", Rule: "3 scripts are idempotent", Broken: "acquire adds to the hold count instead of setting it",
		Edits: []Edit{{"scripts/acquire.lua", "redis.call('HSET', hash, owner, count)", "redis.call('HINCRBY', hash, owner, 1)"}},
		Plan: plan(busyOn(traffic.Reentrant), traffic.Style{
			Kind: traffic.Reentrant, Workers: 1, Hold: ms(0, 25), Think: ms(0, 30), Fixed: 700 * time.Millisecond,
		}), Faults: "lost replies",
	},
	{
		Name: "release of any owner", Rule: "3, 5 a release names its term", Broken: "release deletes the lock of any owner",
		Edits: []Edit{{"scripts/release.lua", "redis.call('HDEL', hash, owner) == 1", "redis.call('DEL', hash) == 1"}},
		Plan:  plan(busyOn(traffic.Plain)), Faults: "pause a client",
	},
	{
		Name: "renewal of any owner", Rule: "3, 5 a renewal names its term", Broken: "a renewal renews the lock of any owner",
		Edits: []Edit{{"scripts/renew.lua", "redis.pcall('HEXISTS', key, owner)", "redis.pcall('EXISTS', key)"}},
		Plan:  plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(1500, 4000), Think: ms(0, 30)}), Faults: "DEL plain",
	},
	{
		Name: "grant after a cancel", Rule: "4 a grant to a cancelled request is released",
		Broken: "a grant that arrives after the request was cancelled is kept",
		Edits: []Edit{
			{"actors/effects.go", "case answer.Kind == machine.Granted, call.Op == request.OpDrain && answer.N != 0:", "case false:"},
			{"actors/calls.go",
				"	if out.Kind == machine.Granted {\n		r.submit(acquire.GiveBack(",
				"	if out.Kind == machine.Granted && false {\n		r.submit(acquire.GiveBack("},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(0, 1), Think: ms(0, 2), GiveUpShare: 1, GiveUpAfter: ms(0, 1)}),
	},
	{
		Name: "no poll", Rule: "6 every wait has a bounded poll", Broken: "a waiter tries again only when a message comes",
		Edits: []Edit{
			{"internal/lock/acquire.go",
				"	l.wait.NextAt = l.now + l.jitter(l.poll())\n	if r.TTL >= 0 {",
				"	l.wait.NextAt = l.now + 1000*l.poll()\n	if false {"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 1, Hold: ms(200, 500), Think: ms(4000, 8000)}), Faults: "lost messages",
	},
	{
		Name: "hand-off after the lease", Rule: "1, 7 nothing is granted after the lease's end",
		Broken: "the lock is handed off in memory, although the lease and the hand-off limit are over",
		Edits: []Edit{
			{"internal/lock/end.go", "if l.holds.len() > 0 && l.now >= l.lease.until {", "if false {"},
			{"internal/lock/local_order.go", "		l.now < l.lease.handOffUntil(l.cfg.Watchdog)", "		true"},
			{"internal/lock/local_order.go", "	case l.lease.turn.IsOver(l.now) || l.lease.sealed:", "	case l.lease.sealed:"},
		},
		Plan: plan(busyOn(traffic.Plain)), Faults: "pause a client",
	},
	{
		Name: "unwatched owner", Rule: "8 the death of the holder releases the lock", Broken: "owners are not watched",
		Edits: []Edit{
			{"internal/owners/owners.go", "by.Post.SendSystem(owner.process, owner.PID, &actor.Watch{Watcher: by.PID})", ""},
			{"internal/owners/owners.go", "now < s.checkAt", "now >= 0"},
		},
		Plan: plan(busyOn(traffic.Actor)),
	},
	{
		Name: "state lost by a crash", Rule: "9 a crash of the lock actor loses nothing",
		Broken: "a restarted lock actor starts with a free lock",
		Edits: []Edit{{"actors/lock_actor.go",
			"		a.stopAlarm() // after a crash",
			"		a.machine = a.adapter.Fresh()\n		a.stopAlarm() // after a crash"}},
		Plan: plan(busyOn(traffic.Plain)), Faults: "crash lock actors",
	},
	{
		Name: "constant tokens", Rule: "fencing tokens grow", Broken: "the token counter is not used",
		Edits: []Edit{{"scripts/fenced_acquire.lua",
			"draw_tokens(counter, string.match(wanted, '^(%d+)%+?(%d*)$'))",
			"tonumber(string.match(wanted, '^%d+'))"}},
		Plan: plan(busyOn(traffic.Fenced)),
	},
	{
		Name: "fair queue ignored", Rule: "fair locks are granted in order of arrival",
		Broken: "a free lock is granted to any request, past the queue",
		Edits:  []Edit{{"scripts/sync_queue.lua", "return not queue.stay[1] and not lock.holder", "return not lock.holder"}},
		Plan:   plan(traffic.Style{Kind: traffic.Fair, Workers: 4, Hold: ms(20, 60), Think: ms(0, 10)}),
	},
	{
		Name: "a lock that lingers is not given up", Rule: "another process gets a lock that lingers without a holder as soon as it asks",
		Broken:            "the process does not hear the question",
		Edits:             []Edit{{"internal/lock/linger.go", "if term == l.lease.term {", "if false {"}},
		GreenWithoutEdits: true, Plan: traffic.LingeringPlan(),
	},
	{
		Name: "wait queue reversed", Rule: "processes have their turns one after another", Broken: "the wait queue is served from its end",
		Edits: []Edit{{"scripts/common/wait_queue_entries.lua", "is_ordered(entry) and entry.at or", "is_ordered(entry) and HALF - entry.at or"}},
		Turns: true, GreenWithoutEdits: true,
		Plan: patient(plan(traffic.Style{Kind: traffic.Plain, Workers: 4, Hold: ms(20, 25), Think: ms(0, 5)})),
	},
	{
		Name: "short transfer", Rule: "a lease is as long as its holder assumes",
		Broken: "the lease of a transfer is shorter than its receiver assumes",
		Edits: []Edit{
			{"scripts/common/wait_queue_transfer.lua", "entry.mode, entry.ttl, joins)", "entry.mode, 100, joins)"},
			{"scripts/common/transfer_to_first.lua", "take(hash, ttl, client", "take(hash, 100, client"},
		},
		Plan: plan(traffic.Style{Kind: traffic.Plain, Workers: 2, Hold: ms(150, 400), Think: ms(0, 30)}), Faults: "nothing reaches Redis",
	},
	{
		Name: "reader with a writer", Rule: "a writer excludes all others", Broken: "readers are granted the lock in any mode",
		Edits: []Edit{{"scripts/read_write_set.lua", "(free or not ours and value_of(hash, 'mode') == 'read')", "true"}},
		Plan:  plan(busyOn(traffic.ReadWrite)),
	},
	{
		Name: "clock stops in a suspend", Rule: "1 the clock runs while the machine is suspended",
		Broken: "the clock stops while the machine is suspended",
		Edits:  []Edit{{"actors/start.go", "boottime.For(system)", "boottime.New()"}},
		Plan:   fast(plan(busyOn(traffic.Plain), toTheEnd(800*time.Millisecond))), Faults: "suspend the clients",
	},
	{
		Name: "timers late after a suspend", Rule: "2 the holder is notified of a loss after a suspend",
		Broken: "timers are not reset when the machine resumes",
		Edits:  []Edit{{"actors/start.go", "r.clock.Beat(r.clocks.Recheck)", "r.clock.Beat(func() {})"}},
		Plan:   fast(plan(toTheEnd(3 * time.Second))), Faults: "suspend the clients",
	},
	{
		Name: "logger on an actor's goroutine", Rule: "13 misbehaving callbacks of the host do no harm",
		Broken: "the logger is called on the goroutine that logs",
		Edits: []Edit{{"internal/host/host.go",
			"	h.logs.add(func() { h.logger.Log(context.Background(), level, message, args...) }, h.reportDroppedLogs)",
			"	h.logger.Log(context.Background(), level, message, args...)"}},
		Plan:   within(traffic.Host{Logger: traffic.Blocks}, plan(busyOn(traffic.Plain), toTheEnd(500*time.Millisecond))),
		Faults: "partition,crash lock actors,restart empty",
	},
	{
		Name: "panic at risk", Rule: "13 misbehaving callbacks of the host do no harm", Broken: "a panic of an at-risk function is not recovered",
		Edits: []Edit{{"internal/host/host.go", "		defer h.Recover(what + \" panicked\")\n", "		_ = what\n"}},
		Plan: within(traffic.Host{AtRisk: traffic.Panics}, plan(busyOn(traffic.Plain),
			traffic.Style{Kind: traffic.Fenced, Workers: 3, Hold: ms(500, 1500), Think: ms(0, 30)},
		)),
		Faults: "nothing comes back,pause Redis",
	},
	{
		Name: "unbounded errand", Rule: "14 every call is bounded", Broken: "a caller runs a command that takes longer than its wait limit",
		Edits: []Edit{{"actors/calls.go", " || !helper.MayRun(a.machine.Summary().LeaseUntil-a.now)", ""}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: 1500 * time.Millisecond, Idle: time.Second,
			Styles: []traffic.Style{{Kind: traffic.Plain, Workers: 1, Hold: ms(0, 5), Think: ms(10, 60), GiveUpShare: 1, GiveUpAfter: ms(0, 50)}},
		}, Faults: "new connections get no replies",
	},
	{
		Name: "connection to a demoted master", Rule: "11 errors are classified",
		Broken: "a connection to a server that has become a replica is kept",
		Edits:  []Edit{{"internal/redisclient/reconnect.go", "len(c.Keys) > 0 && refusal.ByReplica", "false && refusal.ByReplica"}},
		Plan:   plan(busyOn(traffic.Plain)), Faults: "change of roles",
	},
	{
		Name: "one watchdog for all", Rule: "a lease is as long as its holder assumes",
		Broken: "renewals set the TTL to a second, with any watchdog",
		Edits:  []Edit{{"scripts/renew.lua", "redis.call('PEXPIRE', key, lease)", "redis.call('PEXPIRE', key, 1000)"}},
		Plan:   mixed(plan(busyOn(traffic.Plain), traffic.Style{Kind: traffic.Plain, Workers: 1, Hold: ms(1500, 2500), Think: ms(0, 30)})),
		Faults: "nothing reaches Redis",
	},
	{
		Name: "release of a copied grant", Rule: "18 only a grant that did not reach its requester is released",
		Broken: "any copy of a grant that becomes a dead letter is released",
		Edits: []Edit{{"actors/guardian.go", "	<-g.started ", `	r.system.EventStream.Subscribe(func(event any) {
		if dead, ok := event.(*actor.DeadLetterEvent); ok {
			if m, ok := dead.Message.(*messages.Acquired); ok {
				r.Deliver(r.guardian, &messages.Release{Lock: m.Lock, HoldId: m.HoldId})
			}
		}
	})
	<-g.started `}},
		Plan: plan(busyOn(traffic.Actor)),
	},
	{
		Name: "release on a majority", Rule: "4 a release leaves nothing behind", Broken: "a release that failed on a server is not repeated",
		Edits: []Edit{{"internal/backend/majority.go",
			"m.free(free, func(on *member) { m.retryReleaseOn(on, c) }",
			"m.free(free, func(*member) {}"}},
		Plan: traffic.Plan{
			Watchdog: 20 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Servers: 3,
			Styles: []traffic.Style{{
				Kind: traffic.Spread, Workers: 3, Hold: ms(0, 25), Think: ms(0, 50), GiveUpShare: 0.1, GiveUpAfter: ms(0, 100),
			}},
		}, Faults: "a server is out of reach",
	},
	{
		Name: "extended only here", Rule: "a lease is as long as its holder assumes", Broken: "an extension sets the TTL to half of its lease",
		Edits: []Edit{{"internal/lock/op.go",
			"	o.Sent(c.Deadline)\n",
			"	o.Sent(c.Deadline)\n	if o.kind == opExtend {\n		c.Lease /= 2\n	}\n"}},
		GreenWithoutEdits: true, Plan: plan(toTheEnd(400 * time.Millisecond)),
	},
	{
		Name: "minimum time under its owner", Rule: "a hold lasts for its minimum time", Broken: "the key that is left to expire keeps its owner",
		Edits: []Edit{{"scripts/keep.lua", "redis.call('HSET', hash, keeper, '1')\nredis.call('HDEL', hash, owner)\n", ""}},
		Plan:  plan(traffic.JobStyle), Faults: "late replies,lost replies",
	},
	{
		Name: "channel as a key", Rule: "15 KEYS has only keys", Broken: "the channel is among the keys of a script",
		Edits: []Edit{{"internal/protocol/plain.go", "call.Keys = l.hash()", "call.Keys = []string{l.Key(), l.Channel}"}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Servers: 2, Cluster: true,
			Styles: []traffic.Style{busyOn(traffic.Plain), busyOn(traffic.Reentrant), busyOn(traffic.Actor)},
		}, Faults: "a slot is half moved",
	},
	{
		Name: "replicas are not waited for", Rule: "with Config.Replicas, a replica that takes over has every valid lease",
		Broken: "a grant counts although no replica has confirmed it",
		Edits:  []Edit{{"internal/redisclient/replicas.go", "case n < p.replicas:", "case n < 0:"}},
		Plan: traffic.Plan{
			Watchdog: 6 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
			Servers: 3, Cluster: true, Replicas: 1, Lag: 10 * time.Millisecond, Confirm: 1,
			Styles: []traffic.Style{traffic.FreshStyle, busyOn(traffic.Semaphore)},
		}, Faults: "a master is killed",
	},
	{
		Name: "an actor per kind", Rule: "12 one actor owns one key", Broken: "a plain and a fenced lock of one name have separate actors",
		Edits: []Edit{
			{
				"internal/kinds/directory.go", "Composition: Of(call.Kind).Composition}",
				"Composition: request.SeveralServers + 1 + request.Composition(call.Kind)}",
			},
			{"internal/kinds/directory.go", "request.OneKey, request.SemaphoreKey, request.LatchKey}", "request.OneKey}"},
		},
		Plan: plan(busyOn(traffic.APIs)),
	},
	{
		Name: "a lost reply counts twice", Rule: "permits are neither created nor lost", Broken: "an executed command is executed again",
		Edits:             []Edit{{"scripts/common/once.lua", "if last == number then", "if false then"}},
		GreenWithoutEdits: true, Plan: plan(synchronizers()...), Faults: "lost replies",
	},
	{
		Name: "permits are free too early", Rule: "1 a valid permit is not granted again",
		Broken: "a permit counts as expired before its lease is over",
		Edits: []Edit{
			{"scripts/expirable_acquire.lua", "redis.call('ZCOUNT', taken_key, 0, now)", "redis.call('ZCOUNT', taken_key, 0, now + 300)"},
			{"scripts/expirable_acquire.lua",
				"redis.call('ZRANGE', taken_key, 0, now, 'BYSCORE'",
				"redis.call('ZRANGE', taken_key, 0, now + 300, 'BYSCORE'"},
		},
		Plan: plan(synchronizers()...),
	},
	{
		Name: "an id counts twice", Rule: "a latch opens when all ids have counted down", Broken: "every count-down of an id counts",
		Edits: []Edit{{"scripts/latch_count_down.lua",
			"if not seen[id] and not (known and redis.call('SISMEMBER', ids_key, id) == 1) then",
			"if not seen[id] then"}},
		GreenWithoutEdits: true, Plan: plan(busyOn(traffic.Latch)),
	},
	{
		Name: "no poll at a latch", Rule: "6 every wait has a bounded poll", Broken: "a waiter at a latch tries again only when a message comes",
		Edits: []Edit{{"internal/semaphore/waiters.go",
			"if p.wait.NextAt = p.now + p.jitter(p.cfg.EntryTimeout()/2); p.wait.RefusalIsStale {",
			"if p.wait.NextAt = p.now + 1000*p.cfg.Poll; p.wait.RefusalIsStale {"}},
		Plan: plan(busyOn(traffic.Latch)), Faults: "lost messages",
	},
	{
		Name: "half a MultiLock", Rule: "a MultiLock holds all of its members", Broken: "only the first member is acquired",
		Edits: []Edit{
			{"scripts/acquire_all.lua", "for i = 1, #KEYS / 3 do\n  local lock = {", "for i = 1, 1 do\n  local lock = {"},
		},
		Plan: plan(busyOn(traffic.Multi)),
	},
	{
		Name: "slow cancels", Rule: "14 every call is bounded", Broken: "each cancelled request costs the lock actor a millisecond",
		Edits: []Edit{
			{"actors/lock_actor.go", "	\"math\"\n", "	\"math\"\n	\"time\"\n"},
			{"actors/lock_actor.go",
				"		a.handle(call, func(on machine.Machine, now machine.Instant) { on.Cancel(now, id, owner, call) })",
				"		time.Sleep(time.Millisecond)\n		a.handle(call, func(on machine.Machine, now machine.Instant) { on.Cancel(now, id, owner, call) })"},
		},
		Plan: traffic.CancelsPlan(),
	},
	{
		Name: "reservation not passed on", Rule: "a waiter that gives up wakes the waiters behind it",
		Broken: "a MultiLock that gives up does not pass on its reservation",
		Edits: []Edit{{"scripts/common/wait_queue_transfer.lua",
			"return not (queue.open and queue.open > now) and redis.call('EXISTS', hash) == 0",
			"return false and redis.call('EXISTS', hash) == 0"}},
		GreenWithoutEdits: true, Plan: traffic.MembersPlan(),
	},
	{
		Name: "late renewals", Rule: "no more leases are lost than by a peer", Broken: "a lease is renewed shortly before its end",
		Edits: []Edit{{"internal/lock/lease.go",
			"l.renewAt = o.sentAt + cfg.RenewAfter(now-o.sentAt)",
			"l.renewAt = o.sentAt + cfg.Watchdog*95/100"}},
		Plan: traffic.ComputingPlan(),
	},
	{
		Name: "numbers are rounded", Rule: "numbers are exact, or refused", Broken: "tokens that a double cannot represent are issued",
		Edits: []Edit{{"scripts/common/tokens.lua",
			"if token >= n and math.max(token, above + n) <= MAX_NUMBER then",
			"if token >= n then"}},
		GreenWithoutEdits: true, Plan: traffic.EdgesPlan(), Faults: "numbers near the edges",
	},
	{
		Name: "forced release of any holder", Rule: "a forced release ends only the inspected hold",
		Broken: "a forced release ends the hold that exists when it arrives",
		Edits: []Edit{{"scripts/force_release.lua",
			"if not end_named",
			"ARGV[2] = redis.call('HRANDFIELD', hash) or ''\nif not end_named"}},
		GreenWithoutEdits: true, Plan: traffic.ForcedPlan(), Faults: "late forced release",
	},
	{
		Name: "any hash is a lock", Rule: "a foreign key is never deleted, disclosed or waited for",
		Broken: "a hash is not checked for the form of a lock",
		Edits: []Edit{{"scripts/common/foreign_hash.lua",
			"  if not ours or #fields > 2 and",
			"  if false and not ours or false and"}},
		GreenWithoutEdits: true, Plan: traffic.ForeignPlan(), Faults: "foreign hash",
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
