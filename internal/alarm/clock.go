// Package alarm wakes lock actors at the times for which they have asked. A timer for each lock actor would ring on a
// fresh goroutine every time, whose stack has to grow first: with many locks under watchdog that was most of the work.
package alarm

import (
	"container/heap"
	"sync"
	"time"
)

// Sleeper is woken when its alarm goes off. Wake must not block.
type Sleeper interface{ Wake() }

// Alarm wakes a sleeper at a time. It belongs to one clock.
type Alarm struct {
	sleeper Sleeper
	clock   *clock
	// at is the time at which the alarm goes off. The clock's mutex guards at and place.
	at time.Duration
	// place is the position of the alarm in the clock's heap, counted from 1; 0 while the alarm is not set.
	place int
}

// Clocks wake the sleepers of one system.
type Clocks struct {
	now func() time.Duration
	// inRound runs a function that wakes many sleepers.
	inRound func(wakeAll func())
	each    [numClocks]clock
}

// numClocks is the number of clocks, which share the system's processors.
const numClocks = 4

// New returns clocks that read the time from now. They wake all sleepers that are due at once, inside inRound.
func New(now func() time.Duration, inRound func(wakeAll func())) *Clocks {
	all := &Clocks{now: now, inRound: inRound}
	for i := range all.each {
		all.each[i].of, all.each[i].wake = all, make(chan struct{}, 1)
	}
	return all
}

// Alarm returns an alarm for a sleeper. n shares the sleepers between the clocks.
func (all *Clocks) Alarm(n uint64, sleeper Sleeper) Alarm {
	return Alarm{sleeper: sleeper, clock: &all.each[n%numClocks]}
}

// Recheck makes the clocks read the time again: their timers stood still while the machine slept.
func (all *Clocks) Recheck() {
	for i := range all.each {
		all.each[i].recheck()
	}
}

// Close ends the clocks, which no longer wake sleepers, and waits for their goroutines.
func (all *Clocks) Close() {
	for i := range all.each {
		all.each[i].close()
	}
}

// clock has a goroutine for as long as an alarm is set.
type clock struct {
	of *Clocks

	mu      sync.Mutex // guards the fields below, and the alarms
	alarms  alarms
	running bool
	closed  bool
	wake    chan struct{} // has a value when the goroutine must not sleep on
	ended   sync.WaitGroup
}

// Set wakes the sleeper at a time, in place of a time that was set before.
func (a *Alarm) Set(at time.Duration) {
	k := a.clock
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	a.at = at
	if a.place == 0 {
		heap.Push(&k.alarms, a)
	} else {
		k.alarms[a.place-1].at = at
		heap.Fix(&k.alarms, a.place-1)
	}
	if !k.running {
		k.running = true
		k.ended.Go(k.run)
	} else if a.place == 1 {
		k.notify()
	}
}

// Cancel leaves the sleeper asleep.
func (a *Alarm) Cancel() {
	k := a.clock
	k.mu.Lock()
	defer k.mu.Unlock()
	if a.place == 0 {
		return
	}
	heap.Remove(&k.alarms, a.place-1)
	if len(k.alarms) == 0 {
		k.notify()
	}
}

func (k *clock) recheck() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running {
		k.notify()
	}
}

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
	case k.wake <- struct{}{}:
	default:
	}
}

// run wakes the sleepers that are due, for as long as an alarm is set.
func (k *clock) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []*Alarm
	for {
		var sleep time.Duration
		var more bool
		now := k.of.now()
		due, sleep, more = k.due(now, due[:0])
		if !more {
			return
		}
		// In a busy process the goroutine of another clock may have to wait for a processor for seconds: the first
		// goroutine that runs wakes the sleepers of all clocks.
		for i := range k.of.each {
			if other := &k.of.each[i]; other != k {
				due = other.take(now, due)
			}
		}
		if len(due) > 0 {
			k.of.inRound(func() {
				for i, a := range due {
					a.sleeper.Wake()
					due[i] = nil
				}
			})
			continue // that took some time
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-k.wake:
		}
	}
}

// due takes out the alarms that go off now; if there are none, it returns the time until the next alarm.
func (k *clock) due(now time.Duration, list []*Alarm) (due []*Alarm, sleep time.Duration, more bool) {
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

// take takes out the alarms that go off now.
func (k *clock) take(now time.Duration, list []*Alarm) (due []*Alarm) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.alarms) > 0 && k.alarms[0].at <= now {
		list = append(list, heap.Pop(&k.alarms).(*Alarm))
	}
	return list
}

// alarms is a heap, the next to go off first. Each entry has its time: with many alarms, reading the time from the
// alarm costs more than all the rest.
type alarms []entry

type entry struct {
	at    time.Duration
	alarm *Alarm
}

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at < a[j].at }

func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].alarm.place, a[j].alarm.place = i+1, j+1
}

func (a *alarms) Push(x any) {
	alarm := x.(*Alarm)
	*a = append(*a, entry{alarm.at, alarm})
	alarm.place = len(*a)
}

func (a *alarms) Pop() any {
	last := len(*a) - 1
	alarm := (*a)[last].alarm
	(*a)[last] = entry{}
	*a = (*a)[:last]
	alarm.place = 0
	return alarm
}
