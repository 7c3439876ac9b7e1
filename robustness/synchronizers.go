package main

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// one is the traffic on one server: all kinds of locks, and synchronizers.
func one() traffic.Plan {
	p := mixed()
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	short := traffic.Style{
		Kind: traffic.Expirable, Workers: 2, Hold: traffic.Range{To: ms(25)}, Think: traffic.Range{To: ms(40)},
		GiveUpShare: 0.2, GiveUpAfter: traffic.Range{To: ms(50)},
	}
	fixed, toTheEnd, semaphore := short, short, short
	fixed.Workers, fixed.Fixed = 1, ms(700)
	toTheEnd.Workers, toTheEnd.Fixed, toTheEnd.ToTheEnd, toTheEnd.Think = 1, ms(600), true, traffic.Range{From: ms(1000), To: ms(3000)}
	semaphore.Kind = traffic.Semaphore
	semaphore.Workers = 3
	latch := semaphore
	latch.Kind = traffic.Latch
	p.Styles = append(p.Styles, short, fixed, toTheEnd, semaphore, latch)
	return p
}
