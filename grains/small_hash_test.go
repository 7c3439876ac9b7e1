//go:build !race

package grains

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Hash implements explore.World.
func (w *smallWorld) Hash() uint64 {
	h := fnv.New64a()
	buf := make([]byte, 0, 128)
	put := func(numbers ...int8) {
		for _, n := range numbers {
			buf = append(buf, byte(n))
		}
	}
	yes := func(flags ...bool) {
		for _, is := range flags {
			buf = append(buf, map[bool]byte{true: 1}[is])
		}
	}
	entry := w.redis.entries[0]
	put(entry.member, entry.token, w.redis.counter, w.newest, w.lates, w.repeated)
	yes(w.killed)
	yes(w.redis.leases...)
	for i := range w.members {
		m := &w.members[i]
		put(m.id, m.terms, m.asked, int8(m.at), int8(m.activations.late), m.older)
		yes(m.over, m.gone, m.handling, m.overlaps, m.open, m.call != nil)
		if m.call != nil {
			put(m.call.expected.member, m.call.expected.token, m.call.token)
			yes(m.call.done)
		}
		if it := m.all[grainName]; it != nil {
			put(int8(it.token))
			yes(it.runs, it.stopping.Load())
		}
	}
	late := slices.Clone(w.late)
	slices.SortFunc(late, func(a, b lateCommand) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, c := range late {
		put(c.member, c.entry.member, c.entry.token)
		yes(c.register)
	}
	_, _ = h.Write(buf)
	return h.Sum64()
}
