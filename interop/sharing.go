package main

import (
	"fmt"
	"time"
)

// The cases of the read/write lock, which readers hold together.

// readersAndWriters: of each side four write, as in load, and four read twice what is
// written. A reader beside a writer would see it change.
func readersAndWriters(s *scene) {
	key, total, peeks := s.name+":sum", s.times(2000, 400), s.times(250, 50)
	defer s.remove(key)
	began := time.Now()
	var writers, readers []*request
	for i := range 4 {
		for _, side := range []side{java, golang} {
			writers = append(writers, s.crew(side, i).as(write).begin("rmw", "key="+key, fmt.Sprint("rounds=", total/8), "pause=2"))
			readers = append(readers, s.crew(side, 4+i).as(read).begin("peek", "key="+key, fmt.Sprint("rounds=", peeks), "pause=2"))
		}
	}
	torn := int64(0)
	for _, r := range readers {
		torn += r.within(10 * patience).number("torn")
	}
	for _, w := range writers {
		w.within(10 * patience)
	}
	sum := s.number(key)
	s.tell("sum %d of %d, and %d of %d readers saw it change, in %s", sum, total, torn, 8*peeks, inMS(time.Since(began)))
	check(sum == total, "updates were lost: two wrote at once")
	check(torn == 0, "somebody read and wrote at once")
}

// share: a reader of each side hold the lock together, and a writer waits for both.
func share(s *scene) {
	mine := s.thread("mine", s.holding, s.driver(s.holding, long, 0)).as(read)
	other := s.thread("other", s.waiting, s.driver(s.waiting, long, 0)).as(read)
	writer := s.crew(s.waiting, 1).as(write)
	mine.do("lock")
	other.do("trylock").held(true)
	s.readers(2)
	waits := writer.begin("lock")
	s.untilWaiting()
	mine.do("unlock")
	s.readers(1)
	time.Sleep(20 * time.Millisecond) // it would be in by now
	check(waits.pending(), "%s writes beside a reader", writer.side.name)
	released := other.do("unlock").at()
	woken := waits.await().at().Sub(released)
	s.tell("the writer was woken %s after the last reader", inMS(woken))
	check(woken < soon, "the writer was woken only after %v", woken)
	mine.do("trylock").held(false)
	other.do("trylock").held(false)
	writer.do("unlock")
}

// downgrade: a writer reads, and then writes no more. Others may read beside it from then
// on. Redisson does not tell them so; Lockkeeper does.
func downgrade(s *scene) {
	if s.holding == java && s.neglects() {
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
		limit += short // that is when the TTL is over that the reader was told
	}
	released := holder.as(write).do("unlock").at()
	granted := waits.await().at().Sub(released)
	s.tell("the reader of the other side came in after %s", inMS(granted))
	check(granted < limit, "the reader came in only after %v", granted)
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

// longest: a reader with a long lease keeps it while one of the other side comes, renews
// a shorter one, and leaves. Redisson's renewal does cut the TTL for as long as it goes
// on, and its unlock puts it right again.
func longest(s *scene) {
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
	s.tell("beside a renewed TTL of %v it is never below %s, and %s afterwards", short, inMS(lowest), inMS(left))
	if s.waiting == golang {
		check(lowest > lease-2*short, "Go has cut the lease of another reader to %v", lowest)
	}
	if s.waiting == golang || !s.neglects() {
		check(left > lease-after-clockStep, "%v after its begin a lease of %v has %v left", after, lease, left)
	}
	s.readers(1)
	holder.do("unlock")
}

// neglects tells, also in the table, whether this Redisson's watchdog cannot keep a reader's
// holds: in 3.45.1, not in 4.7.0, it renews the lock but not the leases of the holds, and
// the next release ends the lock. Those of other readers it cuts short for good.
func (s *scene) neglects() bool {
	if s.version >= "4" {
		return false
	}
	s.tell("left out: the watchdog of Redisson %s does not keep the leases of readers", s.version)
	return true
}

func (s *scene) readers(want int) {
	p := s.kind.places(s.name)[0]
	n, err := s.at(p).Do(s.ctx, s.at(p).B().Hlen().Key(p.name).Build()).AsInt64()
	try(err)
	check(int(n) == want+1, "Redis has %d fields, want %d readers and the mode", n, want)
}
