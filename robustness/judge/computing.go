package judge

import (
	"cmp"
	"math"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// The libraries that are compared. What a peer does with its locks is not judged.
const (
	ours = "lockkeeper"
	peer = "rueidislock"
)

// Leases are how many holds of a library there were, how many of them were lost, and for how long they were held
// in all.
type Leases struct {
	Held int           `json:"held"`
	Lost int           `json:"lost"`
	For  time.Duration `json:"for"`
}

// compare checks that no more leases are lost than a peer loses in the same processes at the same time.
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
		j.violated("a lease is kept as well as a peer keeps it", "", j.span.To, "%d leases were lost in %v of holding them, and %s has lost %d in %v",
			v[ours].Lost, v[ours].For, peer, v[peer].Lost, v[peer].For)
	}
}

// worse reports whether more leases were lost than another has lost, for the time for which they were held, and by more
// than two standard deviations of such counts.
func worse(a, b Leases) bool {
	lost, expected := float64(a.Lost), float64(b.Lost)*a.For.Seconds()/max(b.For.Seconds(), 1)
	return lost-expected > 2*math.Sqrt(lost+expected)
}

// lostLease reports whether a hold was lost, whether or not its holder was told.
func lostLease(r *history.Request) bool {
	return r.Invalid != 0 || r.Told != 0 || r.ReleaseErr == "lost"
}
