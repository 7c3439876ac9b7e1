package controls

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

func ms(from, to int) traffic.Range {
	return traffic.Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}
}

// plan is a plan with styles, and the usual times.
func plan(styles ...traffic.Style) traffic.Plan {
	return traffic.Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second, Styles: styles,
	}
}

// fast makes Redis's clock run 0.8 % faster.
func fast(p traffic.Plan) traffic.Plan {
	p.ServerRate = 1.008
	return p
}

// patient makes the waiters poll rarely. A try puts the entry of its process back to its place.
func patient(p traffic.Plan) traffic.Plan {
	p.Poll = 2 * time.Second
	return p
}

// within sets the host of all processes.
func within(host traffic.Host, p traffic.Plan) traffic.Plan {
	p.Host = host
	return p
}

// mixed gives the processes different configurations.
func mixed(p traffic.Plan) traffic.Plan {
	p.Mixed = true
	return p
}

// busyOn is a style of workers that want a lock most of the time.
func busyOn(kind traffic.Kind) traffic.Style {
	return traffic.Style{Kind: kind, Workers: 3, Hold: ms(0, 25), Think: ms(0, 30), GiveUpShare: 0.1, GiveUpAfter: ms(0, 50)}
}

// synchronizers are styles of workers at synchronizers of all kinds.
func synchronizers() []traffic.Style {
	kept := toTheEnd(600 * time.Millisecond)
	kept.Kind = traffic.Expirable
	return []traffic.Style{busyOn(traffic.Expirable), kept, busyOn(traffic.Semaphore), busyOn(traffic.Latch)}
}

// toTheEnd is a style of workers that keep a lock as long as it is valid.
func toTheEnd(lease time.Duration) traffic.Style {
	return traffic.Style{Kind: traffic.Plain, Workers: 2, Think: ms(0, 10), Fixed: lease, ToTheEnd: true}
}
