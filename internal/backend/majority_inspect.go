package backend

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// inspect reports the lock as held if one holder has a majority, as soon as that is known.
func (m *majority) inspect(deadline time.Time, done func(protocol.View, error)) {
	answers := &collect[inspection]{n: len(m.members), judge: func(inspections []inspection, last bool) (func(), bool) {
		view, known, err := m.view(inspections)
		if !known && !last {
			return nil, false
		}
		return func() { done(view, err) }, true
	}}
	for _, on := range m.members {
		m.inspectOn(on, deadline, func(v protocol.View, err error) { answers.add(inspection{v, err, on}) })
	}
}

// view combines the answers of the servers. known reports whether the missing answers cannot change the view.
func (m *majority) view(inspections []inspection) (seen protocol.View, known bool, err error) {
	holders, answered, largest := map[string][]protocol.View{}, 0, 0
	seen.TTL = -1
	for _, l := range inspections {
		if l.err != nil {
			err = l.err
			continue
		}
		answered++
		seen.Subscribers = max(seen.Subscribers, l.Subscribers)
		if l.Locked {
			holders[l.Holder] = append(holders[l.Holder], l.View)
			largest = max(largest, len(holders[l.Holder]))
		}
	}
	if answered < m.quorum() {
		return protocol.View{}, len(inspections)-answered > len(m.members)-m.quorum(), err
	}
	for _, views := range holders {
		if len(views) >= m.quorum() {
			agreed, known := m.agreed(views)
			agreed.Subscribers = seen.Subscribers
			return agreed, known, nil
		}
	}
	return seen, largest+len(m.members)-len(inspections) < m.quorum(), nil
}

// agreed combines the views of a majority with the same holder. A server that has not carried out the last re-entry yet
// has another hold count; known reports whether a majority has the same hold count.
func (m *majority) agreed(views []protocol.View) (seen protocol.View, known bool) {
	same := map[int][]protocol.View{}
	for _, v := range views {
		if same[v.Count] = append(same[v.Count], v); len(same[v.Count]) >= m.quorum() {
			views, known = same[v.Count], true
		}
	}
	return slices.MaxFunc(views, func(a, b protocol.View) int { return cmp.Compare(a.TTL, b.TTL) }), known
}
