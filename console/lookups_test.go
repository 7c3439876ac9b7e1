package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The lock that a viewer looks up, and the error of the look-up, are only on the pages of that viewer.
func TestLookUps_ArePrivate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	journal := console.NewJournal()
	here, there := locktest.Open(t, server.URL(), journal.Attach(patient("shop"))), locktest.Open(t, server.URL(), patient("billing"))
	locktest.Acquire(t, here.Lock("mine"))
	locktest.Acquire(t, there.Lock("chosen-held"))
	base := web(t, console.Handler(here.System, quick, console.WithJournal(journal), console.WithFleet(server.Client(t), "")))

	// Four looked-up keys are not locks, so there are more errors than a page shows.
	viewers := map[string]*streaming{"name=chosen-held&kind=plain": stream(t, base+"events?name=chosen-held&kind=plain")}
	for _, kind := range []string{"plain", "fenced", "fair", "read_write"} {
		name := "chosen-" + kind
		server.Do(t, "HSET", name, "password", "secret")
		query := url.Values{"name": {name}, "kind": {kind}}.Encode()
		viewers[query] = stream(t, base+"events?"+query)
		viewers[query].awaits(t, `class="error">[^<]*`+name)
	}
	viewers["name=chosen-held&kind=plain"].awaits(t, "billing")
	for query := range viewers {
		name := strings.TrimPrefix(query, "kind=")
		if d := read(t, base+"data.json?"+query); len(d.Errors) > 1 || len(d.Locks) != 1 ||
			strings.Contains(query, "held") != (len(d.Errors) == 0) {
			t.Errorf("the viewer of %s reads %+v, %v", name, d.Locks, d.Errors)
		}
	}

	others := map[string]string{}
	for _, query := range []string{"", "?q=e", "?page=1", "?name=mine", "?name=other&kind=fair", "?name=chosen&kind=plain", "?fleet=1&q=mine"} {
		others["page "+query] = get(t, base+query)
		others["data.json"+query] = get(t, base+"data.json"+query)
		others["events"+query] = stream(t, base+"events"+query).next(t)
	}
	for what, text := range others {
		if strings.Contains(text, "chosen-") || strings.Contains(text, `class="error"`) || strings.Contains(text, `"errors"`) {
			t.Errorf("%s shows the look-up of another viewer: %s", what, text)
		}
	}
}

// A look-up of an unknown kind is answered with the kinds that there are.
func TestLookUp_OfAnUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	for _, path := range []string{"/lock", "/data.json", "/events"} {
		w := httptest.NewRecorder()
		console.Handler(s.System, quick).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path+"?name=orders&kind=bogus", nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "plain, fenced, fair") {
			t.Errorf("%s is answered with %d: %s", path, w.Code, w.Body)
		}
	}
}

// The error of a lock of this System is shown to all viewers of its row, and to no others.
func TestError_OfAListedLockIsShownToAll(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient("shop"))
	locktest.Acquire(t, s.Lock(k.LockName))
	locktest.Acquire(t, s.Lock("other"))
	k.Do(t, "DEL", k.Name)
	k.Do(t, "HSET", k.Name, "password", "secret")
	base := web(t, console.Handler(s.System, quick))
	for query, want := range map[string]int{"": 1, "?name=" + url.QueryEscape(k.LockName): 1, "?q=other": 0, "?name=other": 0, "?name=third": 0} {
		if d := read(t, base+"data.json"+query); len(d.Errors) != want {
			t.Errorf("%q has the errors %q", query, d.Errors)
		}
	}
}

// While Redis does not answer, each look-up has its own error, and not the error of another look-up.
func TestLookUps_HaveTheirOwnErrors(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{CallTimeout: 300 * time.Millisecond})
	base := web(t, console.Handler(s.System, quick))
	names := []string{"chosen-a", "chosen-b", "chosen-c"}
	var viewers []*streaming
	for _, name := range names {
		viewers = append(viewers, stream(t, base+"events?name="+name))
	}
	k.Server.Pause(t)
	defer k.Server.Resume(t)
	for i, name := range names {
		viewers[i].awaits(t, `class="error">lockkeeper: inspect &#34;`+name)
		if text := strings.Join(read(t, base+"data.json?name="+name).Errors, "; "); strings.Count(text, "chosen") != 1 ||
			!strings.Contains(text, name) {
			t.Errorf("the viewer of %s reads %s", name, text)
		}
	}
	if text := strings.Join(read(t, base+"data.json").Errors, "; "); text == "" || strings.Contains(text, "chosen") {
		t.Errorf("the others read %q", text)
	}
}
