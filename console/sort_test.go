package console

import (
	"slices"
	"testing"
	"time"
)

// The rows are in the order of the longest wait, or in another order that the viewer chooses. All rows are sorted, not
// only a page, and other viewers keep their order.
func TestRows_AreSortedAsChosen(t *testing.T) {
	at := func(minutes int) *time.Time {
		t := time.Unix(0, 0).Add(time.Duration(minutes) * time.Minute)
		return &t
	}
	s := &snapshot{Locks: []lock{
		{Name: "b", Since: at(3)}, {Name: "c", Waiting: 5, Since: at(2)}, {Name: "a", Waiting: 9}, {Name: "d", Since: at(1)},
	}}
	slices.SortStableFunc(s.Locks, byWait)
	for sort, want := range map[string]string{sortName: "abcd", sortHold: "dcba", "": "acdb"} {
		rows, _ := s.page(query{Sort: sort})
		var got string
		for _, l := range rows {
			got += l.Name
		}
		if got != want {
			t.Errorf("by %q: %s, want %s", sort, got, want)
		}
	}
}
