package grains

import (
	"testing"
	"time"
)

// A member that has left stays in the topology for the grace. One that comes back in time, perhaps in another term, has never been
// missing: the connection to it stays.
func TestTopology_KeepsMembersForAWhile(t *testing.T) {
	const grace = time.Second
	now := time.Unix(0, 0)
	both, one := view{"a": {ID: "a", Address: "h:1"}, "b": {ID: "b", Address: "h:2"}}, view{"a": {ID: "a", Address: "h:1"}}
	var top topology
	for _, step := range []struct {
		what    string
		after   time.Duration
		view    view
		members int
		missing bool
	}{
		{what: "both", view: both, members: 2},
		{what: "b is missing", view: one, members: 2, missing: true},
		{what: "b is still missing", after: grace - 1, view: one, members: 2, missing: true},
		{what: "b is back", after: 1, view: both, members: 2},
		{what: "b is missing again", after: grace, view: one, members: 2, missing: true},
		{what: "the grace is over", after: grace, view: one, members: 1},
		{what: "a is a member again", view: view{"c": {ID: "c", Address: "h:1"}}, members: 1},
		{what: "none is left", view: view{}, members: 1, missing: true},
		{what: "the grace of the last is over", after: grace, view: view{}},
	} {
		now = now.Add(step.after)
		missing := top.update(step.view, now, grace)
		if (len(missing) > 0) != step.missing || len(top.list()) != step.members {
			t.Errorf("%s: %d members, %d missing", step.what, len(top.list()), len(missing))
		}
		if list := top.list(); len(list) == 1 && list[0].Id != "a" {
			t.Errorf("%s: the connection to a ends", step.what)
		}
	}
}
