package main

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// computing is the traffic of a process in which many goroutines compute, with two processors for all of them.
// The same number of leases is held by a peer.
func computing() traffic.Plan {
	held := func(kind traffic.Kind) traffic.Style {
		return traffic.Style{Kind: kind, Workers: 20, Hold: traffic.Range{From: 15 * time.Second, To: 25 * time.Second}, Think: traffic.Range{To: 100 * time.Millisecond}}
	}
	return traffic.Plan{
		Watchdog: 3 * time.Second, Poll: time.Second, CallTimeout: time.Second, Idle: time.Second, Busy: traffic.Count{From: 60, To: 200},
		Styles: []traffic.Style{held(traffic.Computing), held(traffic.Peer)},
	}
}

// awake is how soon who can proceed must, and late a Poll that is far above it.
const (
	awake = 1500 * time.Millisecond
	late  = 10 * time.Second
)

// cancels is the traffic in which crowds are cancelled beside others that use the same locks.
func cancels() traffic.Plan {
	p := traffic.Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
		Crowd: traffic.Count{From: 300, To: 4000}, Awake: awake,
	}
	for _, kind := range []traffic.Kind{traffic.Plain, traffic.Fair, traffic.ReadWrite, traffic.Leased, traffic.Semaphore} {
		p.Styles = append(p.Styles, traffic.Style{Kind: kind, Workers: 1, Hold: upTo(25), Think: upTo(40)})
	}
	p.Styles = append(p.Styles, traffic.Style{Kind: traffic.Crowd, Workers: 1, Think: upTo(500)})
	return p
}

// givingUp is the traffic in which requests of every kind end in every way, with a Poll that helps nobody in time.
func givingUp() traffic.Plan {
	p := traffic.Plan{Watchdog: 3 * late, Poll: late, CallTimeout: 400 * time.Millisecond, Idle: time.Second, Awake: awake}
	for _, kind := range []traffic.Kind{traffic.Plain, traffic.Fenced, traffic.Fair, traffic.ReadWrite, traffic.Leased, traffic.Semaphore, traffic.Latch} {
		p.Styles = append(p.Styles, traffic.Style{Kind: kind, Workers: 2, Hold: upTo(50), Think: upTo(100), Impatient: 0.5, GiveUp: upTo(50)})
	}
	p.Styles = append(p.Styles,
		traffic.Style{Kind: traffic.FirstMember, Workers: 1, Hold: between(200, 800), Think: upTo(50)},
		traffic.Style{Kind: traffic.SecondMember, Workers: 2, Hold: upTo(25), Think: upTo(30)},
		traffic.Style{Kind: traffic.Read, Workers: 1, Hold: between(2000, 4000), Think: upTo(300)},
		traffic.Style{Kind: traffic.GivingUp, Workers: 1, Think: between(100, 1500), Impatient: 1, GiveUp: upTo(100)},
	)
	return p
}

func upTo(ms int) traffic.Range { return between(0, ms) }

func between(from, to int) traffic.Range {
	return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}
}
