package console_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The page of all Systems lists every lock with its holder, in pages, and no other keys. One refresh serves all
// viewers.
func TestFleet_ListsEveryLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	open := func(application string) *locktest.Site {
		cfg := patient(application)
		cfg.KeyPrefix = "app:"
		return locktest.Open(t, server.URL(), cfg)
	}
	here, there := open("shop"), open("billing")
	redistest.Eventually(t, "both Systems to have their records", func() bool { return len(server.Keys(t, "*{lockkeeper_systems}:*")) == 2 })
	base := web(t, console.Handler(here.System, quick, console.WithFleet(server.Client(t), "app:")))
	type owner = struct {
		of   *locktest.Site
		kind string
	}
	want := map[string]owner{"fenced": {there, "fenced"}, "mine": {here, "plain"}, "read": {there, "read_write"}}
	for i := range 120 {
		want[fmt.Sprintf("many %03d", i)] = owner{there, "plain"}
	}
	for name, o := range want {
		lock := map[string]*lockkeeper.Lock{"fenced": o.of.FencedLock(name), "plain": o.of.Lock(name), "read_write": o.of.ReadWriteLock(name).Read()}[o.kind]
		locktest.Acquire(t, lock)
	}
	ctx := locktest.Within(t)
	if _, err := there.Semaphore("semaphore").TrySetPermits(ctx, 2, 0); err != nil {
		t.Error(err)
	}
	if _, err := there.Latch("latch").TrySetCount(ctx, 2); err != nil {
		t.Error(err)
	}
	if _, err := there.ExpirableSemaphore("permits").TrySetPermits(ctx, 2); err != nil {
		t.Error(err)
	}
	if _, err := there.ExpirableSemaphore("permits").Acquire(ctx); err != nil {
		t.Error(err)
	}

	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	waiter := locktest.AcquireSoon(waiting, here.Lock("many 119"))
	redistest.Eventually(t, "the wait in Redis", func() bool { return len(server.Keys(t, "*queue:{app:many 119}")) == 1 })

	first := read(t, base+"data.json?fleet=1")
	if first.Locks[0].Name != "many 119" {
		t.Errorf("%s is first, before the lock with a waiter", first.Locks[0].Name)
	}
	looks := server.Calls(t)["scan"]
	second := read(t, base+"data.json?fleet=1&page=1")
	if len(first.Locks) != 100 || first.MoreLocks != len(want)-100 || len(first.Errors) > 0 {
		t.Errorf("the first page has %d locks, and there are %d more: %v", len(first.Locks), first.MoreLocks, first.Errors)
	}
	for _, l := range append(first.Locks, second.Locks...) {
		w, ok := want[l.Name]
		if !ok || !l.Held || l.Kind != w.kind || l.Shared != (w.kind == "read_write") || l.Here != (w.of == here) || !strings.HasPrefix(l.Owner, w.of.ID()) ||
			l.Process.Application != map[bool]string{true: "shop", false: "billing"}[l.Here] || l.Lease <= 0 {
			t.Errorf("%+v, want %+v", l, w)
		}
		delete(want, l.Name)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
	if page := get(t, base+"?fleet=1&q=many&sort=name"); !strings.Contains(page, `href="?fleet=1&amp;page=1&amp;q=many&amp;sort=name"`) ||
		!strings.Contains(page, `<a href="?fleet=1&amp;q=many">Waiting`) {
		t.Errorf("the order is lost: %s", page)
	}
	page := get(t, base+"?fleet=1&q=many")
	for _, text := range []string{`href="?fleet=1&amp;page=1&amp;q=many"`, ">many 000<", "20 more"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %s: %s", text, page)
		}
	}
	if again := server.Calls(t)["scan"]; looks == 0 || again != looks {
		t.Errorf("%d SCANs for one viewer, %d for three", looks, again)
	}
	if response, err := http.Get(web(t, console.Handler(here.System)) + "?fleet=1"); err != nil ||
		response.Body.Close() != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("without WithFleet: %v, %v", response, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()

	giveUp()
	locktest.ExpectEnd(t, waiter, context.Canceled)
	fleet := console.WithFleet(server.Client(t), "app:")
	locktest.Check(t, here.Close(ctx))
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, web(t, console.Handler(here.System, fleet))+"events?fleet=1", nil)
	if response, err := http.DefaultTransport.RoundTrip(request); err != nil {
		t.Error(err)
	} else if body, err := io.ReadAll(response.Body); err != nil || response.Body.Close() != nil ||
		!strings.Contains(string(body), "many 000") || !strings.Contains(string(body), "closed") {
		t.Errorf("the stream did not end with the System: %v, %s", err, body)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// The note of a hold is shown with its holder, escaped, wherever the lock is.
func TestNote_IsShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	here, there := locktest.Open(t, server.URL(), patient("shop")), locktest.Open(t, server.URL(), patient("billing"))
	base := web(t, console.Handler(here.System, quick, console.WithFleet(server.Client(t), "")))
	const note, printed = "<b>10.0.0.1</b>\u202e", "&lt;b&gt;10.0.0.1&lt;/b&gt;\\u202e"
	locktest.Acquire(t, here.Lock("mine"), lockkeeper.WithNote(note))
	locktest.Acquire(t, there.Lock("theirs"), lockkeeper.WithNote(note))
	for path, shown := range map[string]int{"": 1, "lock?name=theirs&kind=plain": 1, "?fleet=1": 2} {
		redistest.Eventually(t, "the notes on the page "+path, func() bool { return strings.Count(get(t, base+path), printed) == shown })
	}
	for _, l := range read(t, base+"data.json?fleet=1").Locks {
		if l.Note != note {
			t.Errorf("%s has the note %q", l.Name, l.Note)
		}
	}
}
