package fleet_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// grainVerdict is what the history of grains shows.
type grainVerdict struct {
	sent, begun, answered, failed, starts int
	// unanswered were handled, and their answers are lost. repeated were begun, and again after their timeout: proto.actor
	// sends such a request again if its clock is late.
	unanswered, repeated int
	// hosts has how many messages each process has begun.
	hosts map[*process]int
	// overruns has how many grains each process has stopped too late, and reported.
	overruns map[*process]int
	// longest is the longest time of a request that was answered, in ms.
	longest int64
	errors  map[string]int
	faults  []string
}

func (v grainVerdict) String() string {
	return fmt.Sprintf("%d starts; overruns %d; %d sent, %d begun, %d answered, %d failed %v, %d answers lost, %d begun again; longest request %d ms", v.starts, len(v.overruns), v.sent, v.begun, v.answered, v.failed, v.errors, v.unanswered, v.repeated, v.longest)
}

// requestTimeout is that of proto.actor's requests, in ns.
const requestTimeout = 5e9

// activationOf is an activation of a grain in a process.
type activationOf struct {
	grain string
	of    *process
}

// judgeGrains judges a history: never two activations of a grain, nor two handlers, unless a process has reported that its
// grains have stopped too late; none begins a message after the next one
// has started; tokens grow; each message is begun once at most, before its timeout. What a killed or paused process had in progress is excused:
// what counts is that it begins nothing.
func judgeGrains(history []event) (v grainVerdict) {
	slices.SortStableFunc(history, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	fault := func(format string, args ...any) { v.faults = append(v.faults, fmt.Sprintf(format, args...)) }
	var overlaps []func() // which a process may report
	late := func(of *process, format string, args ...any) {
		overlaps = append(overlaps, func() {
			if v.overruns[of] == 0 {
				fault(format, args...)
			}
		})
	}
	alive, handling := map[activationOf]int64{}, map[activationOf]int64{}
	newest, sent, begun := map[string]int64{}, map[int64]int64{}, map[int64]bool{}
	v.hosts, v.overruns, v.errors = map[*process]int{}, map[*process]int{}, map[string]int{}
	for _, e := range history {
		what, grain, _ := strings.Cut(e.what, "/")
		grain, text, _ := strings.Cut(grain, "/")
		token, _ := strconv.ParseInt(text, 10, 64)
		it := activationOf{grain, e.of}
		switch what {
		case "started":
			for other, token := range alive {
				if other.grain == grain {
					late(other.of, "%s starts with %d while %d is alive", grain, e.n, token)
				}
			}
			if e.n <= newest[grain] {
				fault("%s has the token %d after %d", grain, e.n, newest[grain])
			}
			newest[grain], alive[it] = e.n, e.n
			v.starts++
		case "stopped":
			delete(alive, it)
		case "begins":
			if token != newest[grain] {
				fault("%d of %s begins %d after %d has started", token, grain, e.n, newest[grain])
			}
			if begun[e.n] && e.at-sent[e.n] < requestTimeout {
				fault("%d is begun twice", e.n)
			} else if begun[e.n] {
				v.repeated++
			}
			for other := range handling {
				if other.grain == grain {
					late(other.of, "two handlers of %s run", grain)
				}
			}
			begun[e.n], handling[it] = true, e.n
			v.begun++
			v.hosts[e.of]++
		case "ends":
			delete(handling, it)
		case "killed", "paused":
			for _, all := range []map[activationOf]int64{alive, handling} {
				for other := range all {
					if other.of == e.of {
						delete(all, other)
					}
				}
			}
		case "sent":
			sent[e.n] = e.at
			v.sent++
		case "answered":
			if !begun[e.n] {
				fault("%d is answered without being begun", e.n)
			}
			v.answered++
			v.longest = max(v.longest, (e.at-sent[e.n])/1e6)
		case "overrun":
			v.overruns[e.of] += int(e.n)
		case "ready", "stopping", "resumed":
		default:
			problem, is := strings.CutPrefix(e.what, "failed-")
			if !is {
				fault("%s", e.what)
			}
			v.failed++
			v.errors[problem]++
			if begun[e.n] {
				v.unanswered++
			}
		}
	}
	for _, judge := range overlaps {
		judge()
	}
	if v.sent != v.answered+v.failed {
		fault("%d of %d requests have no end", v.sent-v.answered-v.failed, v.sent)
	}
	return v
}
