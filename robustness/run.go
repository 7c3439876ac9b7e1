package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/faults"
	"github.com/lockkeeper-go/lockkeeper/robustness/judge"
	"github.com/lockkeeper-go/lockkeeper/robustness/report"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// run is traffic with faults, checked round by round.
type run struct {
	binary string // of the clients
	plan   traffic.Plan
	faults []faults.Fault
	// pause is the time between two faults.
	pause   traffic.Range
	clients int
	seed    uint64
	length  time.Duration // of a round
	limits  judge.Limits
	dir     string
}

// mixed is the traffic of a run: all kinds together.
func mixed() traffic.Plan {
	ms := func(from, to int) traffic.Range {
		return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}
	}
	p := traffic.Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
		ServerRate: 1.008, Mixed: true, BadHosts: true,
	}
	for _, kind := range traffic.Kinds {
		s := traffic.Style{Kind: kind, Workers: 2, Hold: ms(0, 25), Think: ms(0, 40), GiveUpShare: 0.2, GiveUpAfter: ms(0, 50)}
		switch kind {
		case traffic.ReadWrite, traffic.Multi, traffic.APIs:
			s.Workers = 3
		case traffic.Fair, traffic.Actor:
			s.GiveUpShare = 0.1
		}
		p.Styles = append(p.Styles, s)
	}
	// Some locks have a fixed lease.
	p.Styles = append(p.Styles,
		traffic.Style{Kind: traffic.Plain, Workers: 1, Hold: ms(0, 25), Think: ms(1000, 3000), Fixed: 600 * time.Millisecond, ToTheEnd: true},
		traffic.Style{Kind: traffic.Fenced, Workers: 1, Hold: ms(0, 25), Think: ms(0, 100), Fixed: 700 * time.Millisecond},
		traffic.JobStyle,
	)
	return p
}

// cluster is the traffic on a cluster of three servers with a replica each. The leases are long enough
// for a release to be refused by a slot that is half moved, and to outlast a failover.
func cluster() traffic.Plan {
	p := replicated()
	p.Servers, p.Cluster, p.Replicas = 3, true, 1
	return p
}

// sentinel is the traffic on a server with two replicas, watched by Sentinels.
func sentinel() traffic.Plan {
	p := replicated()
	p.Replicas = 2
	return p
}

// replicated is the traffic on masters whose lagging replicas take over. Some locks are held across a takeover.
func replicated() traffic.Plan {
	p := one()
	p.ServerRate, p.Mixed, p.Watchdog, p.Lag, p.Confirm = 0, false, 6*time.Second, 10*time.Millisecond, 1
	for _, kind := range []traffic.Kind{traffic.Plain, traffic.Fenced, traffic.Reentrant} {
		p.Styles = append(p.Styles, traffic.Style{
			Kind: kind, Workers: 1, Hold: traffic.Range{From: time.Second, To: 4 * time.Second}, Think: traffic.Range{To: 5 * time.Second},
		})
	}
	p.Styles = append(p.Styles, traffic.FreshStyle)
	return p
}

// several is the traffic on three independent servers. The leases are long enough to find keys
// that were left behind.
func several() traffic.Plan {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return traffic.Plan{
		Watchdog: 20 * time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Servers: 3,
		Styles: []traffic.Style{{
			Kind: traffic.Spread, Workers: 3, Hold: traffic.Range{To: ms(25)}, Think: traffic.Range{To: ms(200)},
			GiveUpShare: 0.3, GiveUpAfter: traffic.Range{To: ms(100)},
		}},
	}
}

// zones is the traffic with one process further away from Redis, with holds that are longer than
// a turn.
func zones() traffic.Plan {
	p := mixed()
	p.Far, p.Mixed, p.Styles = time.Millisecond, false, nil
	for _, kind := range []traffic.Kind{traffic.Plain, traffic.Fenced, traffic.ReadWrite, traffic.Actor} {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		p.Styles = append(p.Styles, traffic.Style{
			Kind: kind, Workers: 4, Hold: traffic.Range{From: ms(20), To: ms(25)}, Think: traffic.Range{To: ms(5)},
			GiveUpShare: 0.1, GiveUpAfter: traffic.Range{To: ms(50)},
		})
	}
	return p
}

// limitsFor are the limits for the judge. With turns, a waiting process is overtaken by each other one in a bounded
// number of turns, which is not promised for locks on several servers.
func limitsFor(p traffic.Plan, turns bool) judge.Limits {
	l := judge.Limits{
		Lease: p.Lease(), Silence: p.Silence(), Slack: 500 * time.Millisecond, Idle: 2*p.Poll + 1500*time.Millisecond,
		Order: 400 * time.Millisecond, Checker: time.Minute, Turn: p.Turn() + 100*time.Millisecond, Join: 100*time.Millisecond + 2*p.Far,
		Start: time.Second,
	}
	if p.GrantWithin > 0 {
		l.Idle, l.GrantWithin = p.GrantWithin, p.GrantWithin
	}
	if turns && p.GrantWithin == 0 && (p.Servers < 2 || p.Cluster) {
		l.Overtakes = 1
	}
	return l
}

// rounds does one round after another until a time, or until enough returns true.
func (r *run) rounds(w *faults.World, until time.Time, into *report.Report, enough func(*judge.Verdict) bool) error {
	for n := 1; ; n++ {
		v, names, err := r.round(w, n)
		if err != nil {
			return err
		}
		into.Add(v, names)
		if enough(v) || !time.Now().Add(r.length/2).Before(until) {
			return nil
		}
	}
}

// round is one round: traffic with faults, then a while without faults, and the verdict.
func (r *run) round(w *faults.World, n int) (*judge.Verdict, []string, error) {
	dir := filepath.Join(r.dir, fmt.Sprintf("round-%d", n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	if err := w.Begin(dir); err != nil {
		return nil, nil, err
	}
	calm := min(r.length/4, 2*r.limits.Lease+r.limits.Silence+2*time.Second)
	end := time.Now().Add(r.length - calm)
	for len(r.faults) > 0 && time.Now().Before(end) {
		w.Pause(r.pause)
		if err := w.Next(r.faults); err != nil {
			return nil, nil, err
		}
	}
	time.Sleep(time.Until(end) + calm)
	happened, err := w.End()
	if err != nil {
		return nil, nil, err
	}
	v := judge.Judge(happened.Span, happened.Processes, slices.Concat(happened.Counters, happened.Faults),
		happened.Stuck, happened.Ended, happened.Left, happened.Permits, r.limits)
	for _, key := range happened.Changed {
		v.Violations = append(v.Violations, judge.Violation{Check: "a foreign key is not changed", At: happened.To, Detail: key})
	}
	for i := range v.Violations {
		if err := v.Violations[i].Draw(filepath.Join(dir, fmt.Sprintf("violation-%d.html", i+1))); err != nil {
			return nil, nil, err
		}
	}
	var names []string
	for _, f := range happened.Faults {
		names = append(names, f.Name)
	}
	if len(v.Violations) == 0 {
		err = os.RemoveAll(dir)
	}
	return v, names, err
}
