package fleet_test

import (
	"fmt"
	"slices"
	"time"
)

// event is what a worker has reported, or what the test has done to it. An actor is the singleton or a grain, by its name.
type event struct {
	at       int64 // in ns, the same clock for all processes
	what     string
	name     string
	token, n int64
	of       *process
}

// verdict is what a history shows.
type verdict struct {
	starts, sent, begun, answered, refused, failed int
	// doubles are the starts of an instance alongside another.
	doubles int
	// unanswered were handled, and their answers are lost. repeated were begun, and again after their timeout: proto.actor
	// sends such a request again.
	unanswered, repeated int
	// overruns are instances that have stopped too late, and robbed those whose entries Redis has lost: so say their processes.
	// Excused is what happened besides them.
	overruns, robbed, excused int
	// stored were written by the instance that may, and outdated refused by the store.
	stored, outdated int
	// longest is the longest time of a request that was answered, and gap the longest one in which the singleton began nothing.
	longest, gap time.Duration
	// handOvers and takeovers are the times from SIGTERM and SIGKILL of the singleton's process to the start of the next
	// instance, trips those from a message to the singleton to its answer.
	handOvers, takeovers, trips []time.Duration
	errors                      map[string]int
	faults                      []string
}

func (v *verdict) String() string {
	return fmt.Sprintf("%d starts, %d of them alongside another; %d sent, %d begun, %d answered, %d refused, %d failed %v; %d answers lost, %d begun again; "+
		"%d stored, %d outdated; %d overruns, %d robbed, %d excused; "+
		"longest request %v, longest gap of the singleton %v; "+
		"its %d hand-overs: p50 %v, p95 %v; %d takeovers: p50 %v, p95 %v; %d answers: p50 %v, p95 %v",
		v.starts, v.doubles, v.sent, v.begun, v.answered, v.refused, v.failed, v.errors, v.unanswered, v.repeated,
		v.stored, v.outdated, v.overruns, v.robbed, v.excused, v.longest.Round(time.Millisecond),
		v.gap.Round(time.Millisecond),
		len(v.handOvers), quantile(v.handOvers, 0.5), quantile(v.handOvers, 0.95),
		len(v.takeovers), quantile(v.takeovers, 0.5), quantile(v.takeovers, 0.95), len(v.trips), quantile(v.trips, 0.5), quantile(v.trips, 0.95))
}

func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[int(q*float64(len(took)-1))].Round(10 * time.Microsecond)
}
