package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// A record tells for how long a lock is held only for the term that it names.
func TestBusy_KnowsOnlyTheNamedTerm(t *testing.T) {
	t.Parallel()
	const client = "b98a484c-08d0-44fe-801b-6b4288024c43"
	hostile := "a \xff\x00\n\"" + strings.Repeat("x", 4000)
	r := Record{Client: client, Every: 5000, Seen: time.Second, AllWaits: true, Locks: []string{
		Busy("held", 7, time.Minute, 3), Busy("held", 8, 2*time.Minute, 1), Busy(hostile, 9, time.Hour, 0), Busy("waited", 0, 0, 2), "", "a b c", "a b c d",
	}}
	for _, c := range []struct {
		key, owner string
		held       time.Duration
		waiters    int64
	}{
		{key: "held", owner: client + ":7", held: 61 * time.Second, waiters: 4},
		{key: "held", owner: client + ":8", held: 121 * time.Second, waiters: 4},
		{key: "held", owner: client + ":6", waiters: 4},
		{key: hostile, owner: client + ":9", held: time.Hour + time.Second},
		{key: "waited", owner: client + ":1", waiters: 2},
		{key: "other", owner: client + ":7"},
		{key: "held", waiters: 4},
	} {
		if held, waiters := r.HeldAtLeast(c.key, c.owner), r.Waiters(c.key); held != c.held || waiters != c.waiters {
			t.Errorf("%.9q of %s: held for %v, %d wait, want %v and %d", c.key, c.owner, held, waiters, c.held, c.waiters)
		}
	}
	r.AllWaits = false
	if known, unknown := r.Waiters("held"), r.Waiters("other"); known != 4 || unknown != -1 {
		t.Errorf("an incomplete record: %d, %d", known, unknown)
	}
	if r.Seen = time.Hour; r.Waiters("held") != -1 {
		t.Error("an overdue record has a number of waiters")
	}
}

// A record is never longer than what is read of it, however many locks its System holds, and whatever their notes are.
func TestRecord_NeverExceedsItsLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		application, note string
		notes             int
	}{{"app", strings.Repeat("n", keyspace.MaxNote), 18}, {"app", "10.0.0.1:8080", MaxBusy}, {strings.Repeat("\x01", 256), strings.Repeat("\x02", keyspace.MaxNote), 2}} {
		r := Record{Application: c.application, Host: strings.Repeat("h", 253), Since: time.Now(), Version: "v1.2.3", AllWaits: true}
		for i := range MaxBusy {
			r.Locks = append(r.Locks, Busy(fmt.Sprint(i), 1<<63, 1000*time.Hour, 1_000_000))
			r.Notes = append(r.Notes, Note(fmt.Sprint(i), c.note))
		}
		text := r.SystemRenew("", time.Minute, time.Now()).Args[1]
		var got Record
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(text) > MaxRecord ||
			len(got.Locks) != MaxBusy || len(got.Notes) < c.notes {
			t.Errorf("%.3q: %d bytes, %d locks, %d notes, %v", c.application, len(text), len(got.Locks), len(got.Notes), err)
		}
		read := Inspected("", redisclient.Reply{N: [3]int64{1000}, S: [2]string{text}})
		if read.Application != c.application || read.Note("client:1") != c.note || read.Note("client:1000") != "" {
			t.Errorf("%.3q is read as %+v", c.application, read)
		}
	}
}

// A text that is longer than a note is none, and an owner without a term has none.
func TestRecord_IgnoresInvalidNotes(t *testing.T) {
	t.Parallel()
	r := Record{Notes: []string{Note("7", strings.Repeat("x", keyspace.MaxNote+1)), "8", Note("", "hostile"), Note("9", "a b")}}
	for owner, want := range map[string]string{"client:7": "", "client:8": "", "client": "", "client:": "", "client:9": "a b", "client:9:write": ""} {
		if got := r.Note(owner); got != want {
			t.Errorf("%q has the note %q, want %q", owner, got, want)
		}
	}
}
