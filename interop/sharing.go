package main

import (
	"fmt"
	"time"
)

// The cases of the read/write lock.

// readersAndWriters: of each side four threads write, as in load, and four read the number
// twice. A reader alongside a writer would see it change.
func readersAndWriters(s *env) {
	key, total, peeks := s.name+":sum", s.times(2000, 400), s.times(250, 50)
	defer s.remove(key)
	began := time.Now()
	var writers, readers []*request
	for i := range 4 {
		for _, side := range []side{java, golang} {
			writers = append(writers, s.workerThread(side, i).as(write).begin("rmw", "key="+key, fmt.Sprint("rounds=", total/8), "pause=2"))
			readers = append(readers, s.workerThread(side, 4+i).as(read).begin("peek", "key="+key, fmt.Sprint("rounds=", peeks), "pause=2"))
		}
	}
	torn := int64(0)
	for _, r := range readers {
		torn += r.within(10 * timeout).number("torn")
	}
	for _, w := range writers {
		w.within(10 * timeout)
	}
	sum := s.number(key)
	s.addFigure("sum %d of %d, and %d of %d readers saw it change, in %s", sum, total, torn, 8*peeks, inMS(time.Since(began)))
	check(sum == total, "updates were lost: two writers held the lock at the same time")
	check(torn == 0, "a reader and a writer held the lock at the same time")
}

// share: a reader of each side hold the lock at the same time, and a writer waits for both.
func share(s *env) {
	mine := s.thread("mine", s.holding, s.driver(s.holding, long, 0)).as(read)
	other := s.thread("other", s.waiting, s.driver(s.waiting, long, 0)).as(read)
	writer := s.workerThread(s.waiting, 1).as(write)
	mine.do("lock")
	other.do("trylock").held(true)
	s.readers(2)
	waits := writer.begin("lock")
	s.untilWaiting()
	mine.do("unlock")
	s.readers(1)
	time.Sleep(20 * time.Millisecond) // it would have been granted by now
	check(waits.pending(), "%s writes with a reader", writer.side.name)
	released := other.do("unlock").at()
	woken := waits.await().at().Sub(released)
	s.addFigure("the writer was woken %s after the last reader", inMS(woken))
	check(woken < soon, "the writer was woken only after %v", woken)
	mine.do("trylock").held(false)
	other.do("trylock").held(false)
	writer.do("unlock")
}

// downgrade: a writer acquires the read lock, and releases the write lock. Others may read from
// then on. Lockkeeper notifies them of that; Redisson does not.
func downgrade(s *env) {
	if s.holding == java && s.leavesOutReaders() {
		return
	}
	holder := s.holder(short)
	reader, writer := s.waiter(short).as(read), s.thread("writer", s.waiting, s.driver(s.waiting, short, 0)).as(write)
	holder.as(write).do("lock")
	holder.as(read).do("lock")
	s.readers(2) // of which one writes
	waits := reader.begin("lock")
	s.untilWaiting()
	limit := soon
	if s.holding == java {
		limit += short // the reader waits for the TTL that it read
	}
	released := holder.as(write).do("unlock").at()
	granted := waits.await().at().Sub(released)
	s.addFigure("the reader of the other side was granted the lock after %s", inMS(granted))
	check(granted < limit, "the reader was granted the lock only after %v", granted)
	s.readers(2)
	writer.do("trylock").held(false)
	reader.do("unlock")
	time.Sleep(short / 2) // it is renewed as a reader
	s.readers(1)
	writer.do("trylock").held(false)
	last := writer.begin("lock")
	s.untilWaiting()
	ended := holder.as(read).do("unlock").at()
	woken := last.await().at().Sub(ended)
	check(woken < soon, "the writer was woken only after %v", woken)
	writer.do("unlock")
}

// longest: a reader with a long lease keeps it while a reader of the other side acquires the lock,
// renews a shorter lease, and releases. Redisson's renewals do shorten the TTL, and its unlock
// restores it.
func longest(s *env) {
	const lease = 20 * time.Second
	holder := s.holder(long).as(read)
	other := s.thread("other", s.waiting, s.driver(s.waiting, short, 0)).as(read)
	began := holder.do("lock", fmt.Sprint("lease=", lease.Milliseconds())).began()
	other.do("lock")
	lowest := lease
	for until := time.Now().Add(short / 2); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		lowest = min(lowest, s.ttl())
	}
	other.do("unlock")
	left, after := s.ttl(), time.Since(began)
	s.addFigure("with a renewed TTL of %v it is never below %s, and %s afterwards", short, inMS(lowest), inMS(left))
	if s.waiting == golang {
		check(lowest > lease-2*short, "Go has cut the lease of another reader to %v", lowest)
	}
	if s.waiting == golang || !s.leavesOutReaders() {
		check(left > lease-after-clockStep, "%v after its start a lease of %v has %v left", after, lease, left)
	}
	s.readers(1)
	holder.do("unlock")
}

// leavesOutReaders reports, also in the table, whether this Redisson's watchdog cannot keep the holds of readers: the
// watchdog of 3.45.1, unlike that in 4.7.0, renews the lock but not the leases of the holds, and the next release ends
// the lock. It also shortens the leases of other readers for good.
func (s *env) leavesOutReaders() bool {
	if s.version >= "4" {
		return false
	}
	s.addFigure("left out: the watchdog of Redisson %s does not keep the leases of readers", s.version)
	return true
}

func (s *env) readers(want int) {
	p := s.kind.parts(s.name)[0]
	n, err := s.serverOf(p).Do(s.ctx, s.serverOf(p).B().Hlen().Key(p.name).Build()).AsInt64()
	try(err)
	check(int(n) == want+1, "Redis has %d fields, want %d readers and the mode", n, want)
}
