package singleton

import "time"

// small is a state of the exploration. Outbox and Ledger make the decisions.
type small struct {
	*setting
	now     time.Duration
	proxies []worldProxy
	gates   []smallGate
	redis   Whereabouts
	// held: the lock has an owner, the last gate.
	held bool
	late []packet
	// spent is what has happened of times, slow, losses, kills and pauses.
	spent [5]int8
	// numbersLost: an instance has left without its numbers.
	numbersLost bool
	violation   error
}

// smallGate is an instance with its gate, in one term.
type smallGate struct {
	worldGate
	// trusts: the lease lasts as far as its process sees. published: Redis has its place. gone: it has stopped, or was killed.
	trusts, published, gone bool
}

type smallMove struct {
	does doing
	i    int
}

type doing int8

const (
	adds doing = iota
	toGate
	fromGate
	reads
	looks
	failsToLook
	ticks
	breaks
	breaksBoth
	arrivesLate
	begins
	publishes
	closes
	leaves
	leavesNothing
	starts
	kills
	killsWithAnswers
	pauses
	passes
	drops
	hesitates
)

func (d doing) String() string {
	return [...]string{"proxy is sent a message", "proxy's packet arrives", "packet arrives at proxy", "proxy's look is read", "proxy's look is answered",
		"proxy's look fails", "proxy's tick", "proxy's connection breaks", "proxy's connection breaks both ways", "late packet", "gate begins a message", "gate is published",
		"gate closes", "gate has stopped, and leaves its numbers", "gate has stopped, and its numbers are lost",
		"an instance starts", "gate is killed", "gate is killed, its answers are lost, gate", "lease ends: gate",
		"time passes", "message is dropped by gate", "lease seems to have ended: gate"}[d]
}

const (
	spentTimes = iota
	spentSlow
	spentLosses
	spentKills
	spentPauses
)
