package singleton

import (
	"slices"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/explore"
)

// setting is a small world of proxies and a candidate in each of some terms. messages is how many each proxy is sent. times is how
// often time passes, slow how often although something is on its way, and losses how often a connection breaks, or a look or
// what an instance leaves is lost. kills and pauses are how many instances are killed, or paused for longer than their lease.
type setting struct {
	name                               string
	senders, messages, terms           int
	times, slow, losses, kills, pauses int8
	wait                               time.Duration
	// In random worlds: the limits of an outbox and of a message, and whether mailboxes drop messages, and leases seem to end.
	buffer, size int
	drops        bool
	control      string // the rule that is broken on purpose
	digest       *explore.Digest
}

var settings = []setting{
	{name: "a hand-over", senders: 1, messages: 2, terms: 2, times: 2, wait: time.Hour},
	{name: "two hand-overs, three messages", senders: 1, messages: 3, terms: 3, times: 3, wait: time.Hour},
	{name: "two proxies", senders: 2, messages: 1, terms: 2, times: 3, wait: time.Hour},
	{name: "a slow network", senders: 1, messages: 2, terms: 2, times: 4, slow: 2, wait: time.Hour},
	{name: "broken connections", senders: 1, messages: 2, terms: 2, times: 3, losses: 2, wait: time.Hour},
	{name: "a kill", senders: 1, messages: 2, terms: 2, times: 3, kills: 1, wait: time.Hour},
	{name: "a pause", senders: 1, messages: 2, terms: 2, times: 3, pauses: 1, wait: time.Hour},
	{name: "all of it, in a hurry", senders: 2, messages: 2, terms: 3, times: 6, slow: 2, losses: 2, kills: 1, pauses: 1, wait: time.Second},
}

func (s *setting) scenario() explore.Scenario[*small] {
	return explore.Scenario[*small]{Name: s.name, Begin: s.begin}
}

// TestExplore tries everything that can happen to some messages in small worlds: there is one instance, or one alongside another
// that was paused and begins nothing; a message is begun once at most, in order; it is refused once at most, and not at all if
// no instance is killed or paused and nothing is lost. When the faults stop, each message has been begun or refused.
func TestExplore(t *testing.T) {
	var all []explore.Scenario[*small]
	for i := range settings {
		all = append(all, settings[i].scenario())
	}
	explore.All(t, all)
}

// Each rule is needed.
func TestExplore_NoticesWhatIsBroken(t *testing.T) {
	for control, world := range map[string]string{
		"start before the grant":   "a hand-over",
		"release before the stop":  "a hand-over",
		"numbers are not left":     "a hand-over",
		"messages are not counted": "broken connections",
		"no guard":                 "a pause",
	} {
		t.Run(control, func(t *testing.T) {
			s := settings[slices.IndexFunc(settings, func(s setting) bool { return s.name == world })]
			s.control = control
			explore.Notices(t, s.scenario(), 100_000)
		})
	}
}
