package judge

import (
	"cmp"
	"math"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The libraries that are compared. The locks of a peer are not checked.
const (
	ours = "lockkeeper"
	peer = "rueidislock"
)

// Leases counts the holds of a library, how many of them were lost, and their total duration.
type Leases struct {
	Held int           `json:"held"`
	Lost int           `json:"lost"`
	For  time.Duration `json:"for"`
}

// compare checks that at most as many leases are lost as by a peer in the same processes at the same time.
func (j *judge) compare() {
	v := map[string]Leases{}
	for _, p := range j.processes {
		for _, r := range p.Requests {
			if !r.Granted {
				continue
			}
			library := ours
			if r.Parts[0].Kind == peer {
				library = peer
			}
			n := v[library]
			n.Held++
			n.For += cmp.Or(r.Invalid, r.Ended(), j.span.To) - r.Answered
			if lostLease(r) {
				n.Lost++
			}
			v[library] = n
		}
	}
	if v[peer].Held == 0 {
		return
	}
	j.v.Leases = v
	if worse(v[ours], v[peer]) {
		j.violated("no more leases are lost than by a peer", "", j.span.To, "%d leases were lost in %v of holding, and %s lost %d in %v",
			v[ours].Lost, v[ours].For, peer, v[peer].Lost, v[peer].For)
	}
}

// worse reports whether a lost more leases than b for the same duration, by more than two standard deviations of such
// counts.
func worse(a, b Leases) bool {
	lost, expected := float64(a.Lost), float64(b.Lost)*a.For.Seconds()/max(b.For.Seconds(), 1)
	return lost-expected > 2*math.Sqrt(lost+expected)
}

// lostLease reports whether a hold was lost, whether or not its holder was notified.
func lostLease(r *history.Request) bool {
	return r.Invalid != 0 || r.Notified != 0 || r.ReleaseErr == "lost"
}
