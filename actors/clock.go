package actors

import (
	"container/heap"
	"sync"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// clock wakes actors at the times for which they have asked. A timer for each of
// them would ring on a fresh goroutine every time, whose stack has to grow first: with
// many locks under watchdog that was most of the work.
type clock struct {
	rt *Runtime

	mu      sync.Mutex // guards what follows, and the children's alarms
	alarms  alarms
	running bool
	closed  bool
	sooner  chan struct{} // something has happened that the goroutine must not sleep through
	ended   sync.WaitGroup
}

// clocks is how many there are for one system, to share its processors.
const clocks = 4

// alarm is when a child is to be woken; its place among the alarms counts from 1, and is 0
// while it is not set.
type alarm struct {
	at    machine.Instant
	place int
}

// set has a child woken at a time, and not at one that was set before.
func (k *clock) set(s *lockState, at machine.Instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	s.alarm.at = at
	if s.alarm.place == 0 {
		heap.Push(&k.alarms, s)
	} else {
		k.alarms[s.alarm.place-1].at = at
		heap.Fix(&k.alarms, s.alarm.place-1)
	}
	if !k.running {
		k.running = true
		k.ended.Go(k.run)
	} else if s.alarm.place == 1 {
		k.notify()
	}
}

func (k *clock) cancel(s *lockState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.alarm.place == 0 {
		return
	}
	heap.Remove(&k.alarms, s.alarm.place-1)
	if len(k.alarms) == 0 {
		k.notify()
	}
}

// beat has the goroutine look at the present again: its timer stood still while the
// machine slept.
func (r *Runtime) beat() {
	for i := range r.clocks {
		r.clocks[i].again()
	}
}

func (k *clock) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running {
		k.notify()
	}
}

// close wakes no lock actor any more, and waits for the goroutine.
func (k *clock) close() {
	k.mu.Lock()
	k.closed = true
	for len(k.alarms) > 0 {
		heap.Pop(&k.alarms)
	}
	k.notify()
	k.mu.Unlock()
	k.ended.Wait()
}

func (k *clock) notify() {
	select {
	case k.sooner <- struct{}{}:
	default:
	}
}

// run wakes those that are due, for as long as an alarm is set.
func (k *clock) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []*lockState
	for {
		var sleep time.Duration
		var more bool
		now := k.rt.Now()
		due, sleep, more = k.due(now, due[:0])
		if !more {
			return
		}
		// In a busy process another clock's goroutine may have to wait for its turn for seconds: the first that has
		// one wakes for all.
		for i := range k.rt.clocks {
			if other := &k.rt.clocks[i]; other != k {
				due = other.take(now, due)
			}
		}
		if len(due) > 0 {
			k.rt.redis.Round(func() {
				for i, s := range due {
					s.post(tick{})
					due[i] = nil
				}
			})
			continue // that took its time
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-k.sooner:
		}
	}
}

// due takes out those that are to be woken now; if there are none, it says when the next one is.
func (k *clock) due(now machine.Instant, list []*lockState) (due []*lockState, sleep time.Duration, more bool) {
	list = k.take(now, list)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(list)+len(k.alarms) == 0 {
		k.running = false
		return nil, 0, false
	}
	if len(k.alarms) > 0 {
		sleep = k.alarms[0].at - now
	}
	return list, sleep, true
}

// take takes out the actors that are to be woken now.
func (k *clock) take(now machine.Instant, list []*lockState) (due []*lockState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.alarms) > 0 && k.alarms[0].at <= now {
		list = append(list, heap.Pop(&k.alarms).(*lockState))
	}
	return list
}

// alarms is a heap of children, the next one to be woken first. Each entry has its time: with many
// locks, to look for it in the child costs more than the rest.
type alarms []entry

type entry struct {
	at    machine.Instant
	child *lockState
}

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }

func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].child.alarm.place, a[j].child.alarm.place = i+1, j+1
}

func (a *alarms) Push(x any) {
	s := x.(*lockState)
	*a = append(*a, entry{s.alarm.at, s})
	s.alarm.place = len(*a)
}

func (a *alarms) Pop() any {
	last := len(*a) - 1
	s := (*a)[last].child
	(*a)[last] = entry{}
	*a = (*a)[:last]
	s.alarm.place = 0
	return s
}
