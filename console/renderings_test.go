package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
)

// All viewers with the same query get the same text, which is written once for each snapshot.
func TestPages_AreWrittenOnce(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{Watchdog: time.Hour, CallTimeout: time.Minute})
	locktest.Acquire(t, s.Lock(k.LockName))
	c := newConsole(s.System, WithInterval(time.Hour), WithFleet(k.Server.Client(t), ""))
	var written atomic.Int64
	c.write = func(f form, v *view) ([]byte, error) {
		written.Add(1)
		return write(f, v)
	}
	h := c.handler()
	get := func(query string) {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/"+query, nil)); w.Code != http.StatusOK {
			t.Errorf("%s: the page is %d %s", query, w.Code, w.Body)
		}
	}
	for i, query := range []string{"", "?q=a", "?q=b", "?q=b&page=1", "?fleet=1&q=a", "data.json", "data.json?q=a"} {
		var viewers sync.WaitGroup
		for range 50 {
			viewers.Go(func() { get(query) })
		}
		viewers.Wait()
		if n := written.Load(); n != int64(i)+1 {
			t.Errorf("%d texts were written for %d queries of 50 viewers each", n, i+1)
		}
	}

	before := written.Load()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := make(chan struct{}, 50)
	var streams sync.WaitGroup
	for range 50 {
		streams.Go(func() {
			w := flushed{httptest.NewRecorder(), events}
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", nil))
		})
	}
	for range 50 {
		locktest.Await(t, "an event of each stream", events)
	}
	get("lock?name=other") // causes another refresh
	for range 50 {
		locktest.Await(t, "an event of each stream after another look", events)
	}
	cancel()
	streams.Wait()
	if n := written.Load() - before; n != 3 {
		t.Errorf("%d texts were written for 50 streams of two refreshes, and a page", n)
	}
}

// flushed is a ResponseWriter that reports each flush.
type flushed struct {
	*httptest.ResponseRecorder
	events chan<- struct{}
}

func (w flushed) Flush() { w.events <- struct{}{} }

// Texts beyond the limit are written, but not kept.
func TestPages_ThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	var r renderings
	const size = maxKept/10 + 1
	for range 2 {
		for i := range 100 {
			text, err := r.get(rendering{query{Page: i}, wholePage}, func() ([]byte, error) { return make([]byte, size), nil })
			if len(text) != size || err != nil {
				t.Fatal(len(text), err)
			}
		}
	}
	if len(r.made) != 9 || r.size > maxKept {
		t.Errorf("%d texts are kept, of %d bytes", len(r.made), r.size)
	}
	for range 2 {
		if _, err := r.get(rendering{query{Filter: string(make([]byte, maxKept))}, wholePage}, func() ([]byte, error) { return nil, errors.New("no") }); err == nil {
			t.Error("an error is lost")
		}
	}
	if len(r.made) != 9 {
		t.Error("a query longer than the limit is kept")
	}
}
