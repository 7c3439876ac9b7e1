package traffic

import "time"

// ComputingPlan is the traffic of a process with many busy goroutines on two processors. The same number of leases is
// held by the library for comparison.
func ComputingPlan() Plan {
	held := func(kind Kind) Style {
		return Style{Kind: kind, Workers: 20, Hold: Range{From: 15 * time.Second, To: 25 * time.Second}, Think: Range{To: 100 * time.Millisecond}}
	}
	return Plan{
		Watchdog: 3 * time.Second, Poll: time.Second, CallTimeout: time.Second, Idle: time.Second, Busy: Count{From: 60, To: 200},
		Styles: []Style{held(Computing), held(Peer)},
	}
}

// grantWithin is how soon a request that can be granted must be, and late a Poll that is far above it.
const (
	grantWithin = 1500 * time.Millisecond
	late        = 10 * time.Second
)

// CancelsPlan is the traffic in which crowds are cancelled while other workers use the same locks.
func CancelsPlan() Plan {
	p := Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
		Crowd: Count{From: 300, To: 4000}, GrantWithin: grantWithin,
	}
	for _, kind := range []Kind{Plain, Fair, ReadWrite, Expirable, Semaphore} {
		p.Styles = append(p.Styles, Style{Kind: kind, Workers: 1, Hold: upTo(25), Think: upTo(40)})
	}
	p.Styles = append(p.Styles, Style{Kind: Crowd, Workers: 1, Think: upTo(500)})
	return p
}

// LingeringPlan is the traffic at locks that linger in a process without a holder, unless another one asks for them.
// Poll and the end of the lingering come too late to help.
func LingeringPlan() Plan {
	p := Plan{Watchdog: 3 * late, Poll: late, CallTimeout: 400 * time.Millisecond, Idle: time.Second, Linger: late, GrantWithin: grantWithin}
	for _, kind := range []Kind{Plain, Reentrant, Fenced} {
		p.Styles = append(p.Styles, Style{Kind: kind, Workers: 2, Hold: upTo(10), Think: between(2500, 5000)})
	}
	return p
}

// GivingUpPlan is the traffic in which requests of every kind end in every way, with a Poll too rare to help.
func GivingUpPlan() Plan {
	p := Plan{Watchdog: 3 * late, Poll: late, CallTimeout: 400 * time.Millisecond, Idle: time.Second, GrantWithin: grantWithin}
	for _, kind := range []Kind{Plain, Fenced, Fair, ReadWrite, Expirable, Semaphore, Latch} {
		p.Styles = append(p.Styles, Style{Kind: kind, Workers: 2, Hold: upTo(50), Think: upTo(100), GiveUpShare: 0.5, GiveUpAfter: upTo(50)})
	}
	p.Styles = append(p.Styles, MembersPlan().Styles...)
	p.Styles = append(p.Styles, Style{Kind: Read, Workers: 1, Hold: between(2000, 4000), Think: upTo(300)})
	return p
}

// MembersPlan is the part of GivingUpPlan with requests that stop waiting for MultiLocks.
func MembersPlan() Plan {
	return Plan{
		Watchdog: 3 * late, Poll: late, CallTimeout: 400 * time.Millisecond, Idle: time.Second, GrantWithin: grantWithin,
		Styles: []Style{
			{Kind: FirstMember, Workers: 1, Hold: between(200, 800), Think: upTo(50)},
			{Kind: SecondMember, Workers: 2, Hold: upTo(25), Think: upTo(30)},
			{Kind: GivingUp, Workers: 1, Think: between(100, 1500), GiveUpShare: 1, GiveUpAfter: upTo(100)},
		},
	}
}

func upTo(ms int) Range { return between(0, ms) }

func between(from, to int) Range {
	return Range{From: time.Duration(from) * time.Millisecond, To: time.Duration(to) * time.Millisecond}
}

// ForcedPlan is the traffic while locks are released by force, with holds shorter than the delay of that command. Some
// commands arrive after their caller got an error.
func ForcedPlan() Plan {
	p := Plan{Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: time.Second, Idle: time.Second, Operator: true}
	for _, kind := range []Kind{Plain, Reentrant, Fenced, Fair, ReadWrite} {
		p.Styles = append(p.Styles, Style{Kind: kind, Workers: 1, Hold: between(50, 200), Think: upTo(30)})
	}
	return p
}

// ForeignPlan is the traffic at names that become another application's keys.
func ForeignPlan() Plan {
	return Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
		Styles: []Style{{Kind: Foreign, Workers: 12, Think: upTo(30)}},
	}
}

// EdgesPlan is the traffic at numbers near the edges.
func EdgesPlan() Plan {
	return Plan{
		Watchdog: time.Second, Poll: 250 * time.Millisecond, CallTimeout: 400 * time.Millisecond, Idle: time.Second,
		Styles: []Style{{Kind: Edge, Workers: 6, Hold: upTo(10), Think: upTo(20)}},
	}
}
