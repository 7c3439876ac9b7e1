package fleet_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// event is what a worker has reported, or what the test has done to it.
type event struct {
	at   int64 // in ns, the same clock for all processes
	what string
	n    int64
	of   *process
}

// verdict is what a history shows.
type verdict struct {
	sent, begun, answered, refused int
	terms                          int
	// unanswered were begun, and their answers are lost.
	unanswered int
	// longest is the longest time without a beginning, in ms.
	longest int64
	faults  []string
}

func (v verdict) String() string {
	return fmt.Sprintf("%d terms; %d sent, %d begun, %d answered, %d refused, %d answers lost; longest gap %d ms", v.terms, v.sent, v.begun, v.answered, v.refused, v.unanswered, v.longest)
}

// judge judges a history: never two instances at once, none handles a message after the next one has started, tokens grow,
// each message is begun once and in order, or refused. One that was begun may be refused too, if its outcome was not known.
func judge(history []event) (v verdict) {
	slices.SortStableFunc(history, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	fault := func(format string, args ...any) { v.faults = append(v.faults, fmt.Sprintf(format, args...)) }
	alive := map[*process]int64{} // the token of its instance
	newest, last, lastAt := int64(0), int64(0), int64(0)
	sent, begun, settled := map[int64]bool{}, map[int64]bool{}, map[int64]string{}
	for _, e := range history {
		switch e.what {
		case "started":
			if e.n <= newest {
				fault("an instance has the token %d after %d", e.n, newest)
			}
			newest = e.n
			v.terms++
			for _, token := range alive {
				fault("the instance %d starts while %d is alive", e.n, token)
			}
			alive[e.of] = e.n
		case "stopped", "killed", "paused": // a paused process may have an instance: what counts is that it handles nothing
			delete(alive, e.of)
		case "sent":
			sent[e.n] = true
			v.sent++
		case "answered", "refused":
			// The answer to a message whose outcome was not known may be late.
			if before := settled[e.n]; before != "" && (before != "refused" || e.what != "answered") {
				fault("%d is %s, and was %s before", e.n, e.what, before)
			}
			settled[e.n] = e.what
			if e.what == "refused" {
				v.refused++
			} else {
				v.answered++
			}
		case "ready", "stopping":
		default:
			token, is := strings.CutPrefix(e.what, "begins-")
			if !is {
				fault("%s", e.what)
				continue
			}
			if n, _ := strconv.ParseInt(token, 10, 64); n != newest {
				fault("the instance %d begins %d after %d has started", n, e.n, newest)
			}
			if begun[e.n] || e.n < last {
				fault("%d begins after %d", e.n, last)
			}
			if lastAt > 0 {
				v.longest = max(v.longest, (e.at-lastAt)/1e6)
			}
			begun[e.n], last, lastAt = true, e.n, e.at
			v.begun++
		}
	}
	for n := range sent {
		switch {
		case settled[n] == "" && !begun[n]:
			fault("%d is lost", n)
		case settled[n] == "":
			v.unanswered++
		case settled[n] == "answered" && !begun[n]:
			fault("%d is answered without a beginning", n)
		}
	}
	return v
}
