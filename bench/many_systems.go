package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// systems is s19: more and more Systems contend for one lock, one goroutine each, as so many processes would. They
// are in one process, so that there can be many.
func systems() (list []scenario) {
	for _, n := range []int{2, 8, 32, 100, 200, 500} {
		list = append(list, scenario{
			name: fmt.Sprintf("s19-turns-%d", n), section: "s19-turns", of: "Systems",
			title:     "Systems that take turns with one lock, with one goroutine each",
			processes: 1, goroutines: n, oneKey: true, systems: n, stretch: 3,
			libs: []string{ours}, columns: waitColumns, run: (*task).pairs,
		}, scenario{
			name: fmt.Sprintf("s19-idle-%d", n), section: "s19-idle", of: "Systems",
			title:     "Systems that wait for one lock, which another process holds",
			processes: 2, goroutines: 1, oneKey: true, systems: n, size: n, stretch: 4,
			libs: []string{ours}, columns: growthColumns, run: (*task).waitMany,
		})
	}
	for _, n := range []int{8, 32, 100} {
		list = append(list, scenario{
			name: fmt.Sprintf("s19-permits-%d", n), section: "s19-permits", of: "Systems",
			title:     "Systems that take turns with a semaphore of 4 permits, with one goroutine each",
			processes: 1, goroutines: n, kind: semaphore, permits: 4, oneKey: true, systems: n, stretch: 3,
			libs: []string{ours}, columns: waitColumns, run: (*task).pairs,
		})
	}
	return list
}

// manySystems is the library in several Systems.
type manySystems struct {
	each []library
	next atomic.Uint64 // the System of the next acquire
}

func openSystems(addr string, lease time.Duration, s scenario) (library, error) {
	m := &manySystems{}
	for range s.systems {
		one, err := openSystem(addr, lease, s)
		if err != nil {
			return nil, err
		}
		m.each = append(m.each, one)
	}
	return m, nil
}

func (m *manySystems) turn() library { return m.each[m.next.Add(1)%uint64(len(m.each))] }

func (m *manySystems) acquire(name string) (func() error, error) { return m.turn().acquire(name) }

func (m *manySystems) hold(name string) error { return m.turn().hold(name) }

// loop gives each user a System of its own.
func (m *manySystems) loop(u *user) { u.loop(m.each[u.i]) }
