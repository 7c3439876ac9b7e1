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
