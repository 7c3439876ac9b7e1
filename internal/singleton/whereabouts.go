package singleton

import (
	"encoding/json"
	"strings"
)

// Whereabouts is the data in Redis about the instances of a singleton.
type Whereabouts struct {
	// At is the gate of the instance that was granted the lock last.
	At Place
	// Left are the last instances that have stopped in good order, by their gates: the number of the last message that
	// each instance has begun, by proxy.
	Left map[string]map[string]uint64
}

// Place is the place of a gate: the address of its node, and its id there.
type Place struct{ Address, Gate string }

// String returns the place as Redis has it.
func (p Place) String() string { return p.Address + " " + p.Gate }

// LeftText returns the text that a gate leaves in Redis.
func LeftText(gate string, begun map[string]uint64) string {
	text, _ := json.Marshal(begun) // cannot fail: texts and numbers
	return gate + " " + string(text)
}

// Read reads the fields of Redis: lines, each of which begins with a token. A line with another form is ignored.
func Read(at, left string) Whereabouts {
	w := Whereabouts{Left: map[string]map[string]uint64{}}
	if parts := strings.Split(at, " "); len(parts) == 3 {
		w.At = Place{Address: parts[1], Gate: parts[2]}
	}
	for line := range strings.Lines(left) {
		var begun map[string]uint64
		if parts := strings.SplitN(line, " ", 3); len(parts) == 3 && json.Unmarshal([]byte(parts[2]), &begun) == nil {
			w.Left[parts[1]] = begun
		}
	}
	return w
}
