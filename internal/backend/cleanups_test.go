package backend

import (
	"strconv"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
)

// clock is a System that stands still.
type clock lock.Instant

func (c clock) Now() lock.Instant { return lock.Instant(c) }

// A server that is down for long is sent a few releases at a time, those that have waited
// longest first, and none whose TTL is over.
func TestCleanupsAreTakenInTurn(t *testing.T) {
	const now = time.Hour
	k := &NewServer(clock(now), nil, Config{}).cleanups
	k.running = true // no timer
	tried, ended := "", ""
	replies := map[string]Reply{"1": failing(true, true), "3": outcome(lock.Absent), "5": failing(false, false)}
	for i := range 10 {
		name, until := strconv.Itoa(i), now+time.Minute
		if i%2 == 0 {
			until = now
		}
		try := func(_ time.Time, done func(Reply)) {
			tried += name
			done(replies[name])
		}
		k.add(cleanup{try: try, until: until, done: func(certain bool) {
			if ended += name; certain == (name == "5") {
				t.Errorf("%s ended, certain: %v", name, certain)
			}
		}})
	}
	k.send(k.take(6), func(confirmed bool) {
		if !confirmed {
			t.Error("nothing was confirmed")
		}
	})
	if tried != "135" || ended != "02345" {
		t.Errorf("tried %s, and %s have ended", tried, ended)
	}
	if until := time.Duration(k.server.leftUntil.Load()); until != now+time.Minute {
		t.Errorf("what has failed for good is left behind until %v", until)
	}
	replies["1"], replies["7"], replies["9"] = Reply{}, failing(true, false), Reply{}
	k.send(k.take(5), func(bool) {})
	if tried != "135791" || ended != "023456891" {
		t.Errorf("then tried %s, and %s have ended", tried, ended)
	}
	if k.complete() {
		t.Error("complete, with one left")
	}
	k.take(1)
	if k.complete() {
		t.Error("complete, with one under way")
	}
}

// However many releases a server owes: while it is away, a few are sent again at a time.
func TestCleanupsAreFewAtATime(t *testing.T) {
	k := &NewServer(clock(0), nil, Config{}).cleanups
	k.running = true // no timer
	var waiting []func(Reply)
	for range 10 * cleanupBatch {
		k.add(cleanup{try: func(_ time.Time, done func(Reply)) { waiting = append(waiting, done) }, until: time.Hour})
	}
	for range 3 {
		k.round()
		if len(waiting) != cleanupBatch {
			t.Fatalf("%d are under way, want %d", len(waiting), cleanupBatch)
		}
		for _, done := range waiting {
			done(failing(true, false))
		}
		k.timer.Stop()
		waiting = nil
	}
	if len(k.queue) != 10*cleanupBatch {
		t.Errorf("%d are left", len(k.queue))
	}
}

// Whoever waits for a release is told when its server is closed before it was confirmed.
func TestClosedServerRetriesNothing(t *testing.T) {
	s := NewServer(clock(0), nil, Config{})
	told := 0
	s.cleanups.add(cleanup{
		try:   func(_ time.Time, done func(Reply)) { done(failing(true, false)) },
		until: time.Hour,
		done: func(certain bool) {
			if told++; certain {
				t.Error("the release failed, and is said to be certain")
			}
		},
	})
	s.Close(nil)
	if told != 1 || s.Released() {
		t.Errorf("told %d times; released %v", told, s.Released())
	}
}
