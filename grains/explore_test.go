// The exploration has one goroutine, so it is not built with the race detector, which would only slow it down.

//go:build !race

package grains

import (
	"slices"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// setting is a small world of two members and a grain. For each of its members, asks is how often a process asks it for the
// grain, and terms how many terms it has. late is how many registrations may be given up, and be carried out later or not, and
// repeats how many late commands may be carried out twice. kills: a process may be killed. pauses: a process may do nothing
// for longer than its lease while a grain runs.
type setting struct {
	name                       string
	asks, terms, late, repeats int8
	kills, pauses              bool
	control                    string // the rule that is broken on purpose
}

var settings = []setting{
	{name: "a call each", asks: 1, terms: 1, late: 1},
	{name: "two calls each", asks: 2, terms: 1, late: 2, repeats: 1},
	{name: "a kill", asks: 1, terms: 2, late: 1, kills: true},
	{name: "three calls each", asks: 3, terms: 1, late: 1},
	{name: "two terms each", asks: 2, terms: 2, late: 1},
	{name: "pauses", asks: 1, terms: 2, pauses: true, late: 1},
	{name: "all of it", asks: 3, terms: 2, late: 2, repeats: 1, kills: true, pauses: true},
}

func (s *setting) scenario() explore.Scenario[*smallWorld] {
	return explore.Scenario[*smallWorld]{Name: s.name, Begin: s.begin}
}

// TestExplore tries everything that can happen to a grain in small worlds: no two activations are alive, but in the term of a
// process that was paused, which reports it; none begins a message past T − D or after another one has started; tokens
// grow. When the faults stop, a process that asks for the grain gets it.
func TestExplore(t *testing.T) {
	var all []explore.Scenario[*smallWorld]
	for i := range settings {
		all = append(all, settings[i].scenario())
	}
	explore.All(t, all)
}

// Each rule is needed: without it, the exploration finds two activations, a late message or a late stop that is not reported.
func TestExplore_NoticesWhatIsBroken(t *testing.T) {
	for control, world := range map[string]string{
		"start before the registration":     "a call each",
		"no look at the other lease":        "a call each",
		"release before the stop":           "a call each",
		"start without a look at the lease": "a call each",
		"unregister without the token":      "two calls each",
		"the reply of another call":         "three calls each",
		"no guard":                          "pauses",
		"late stops are not counted":        "pauses",
	} {
		t.Run(control, func(t *testing.T) {
			s := settings[slices.IndexFunc(settings, func(s setting) bool { return s.name == world })]
			s.control = control
			explore.Notices(t, s.scenario(), 300_000)
		})
	}
}
