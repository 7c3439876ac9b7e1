package console_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// What a viewer looks up, and the error of its look-up, are on the pages of that viewer alone.
func TestLookUpsArePrivate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	journal := console.NewJournal()
	here, there := locktest.Open(t, server.URL(), journal.Attach(patient("shop"))), locktest.Open(t, server.URL(), patient("billing"))
	locktest.Acquire(t, here.Lock("mine"))
	locktest.Acquire(t, there.Lock("chosen-held"))
	base := web(t, console.Handler(here.System, quick, console.WithJournal(journal), console.WithFleet(server.Client(t), "")))

	// Four looked-up keys are no locks, so there are more errors than a page shows.
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
		if d := read(t, base+"data.json?"+query); len(d.Errors) > 1 || len(d.Locks) != 1 || strings.Contains(query, "held") != (len(d.Errors) == 0) {
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
			t.Errorf("%s shows what another viewer looks up: %s", what, text)
		}
	}
}

// A look-up of a lock that this System has adds nothing to its row for other viewers, and removes nothing: the error
// of looking it up as another kind is not theirs.
func TestLookUpOfAListedLock(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient("shop"))
	locktest.Acquire(t, s.Lock(k.LockName))
	base := web(t, console.Handler(s.System, quick))
	name := url.QueryEscape(k.LockName)
	asItIs, asFair := stream(t, base+"events?name="+name), stream(t, base+"events?kind=fair&name="+name)
	asItIs.awaits(t, "this process")
	asFair.next(t)
	if d := read(t, base+"data.json"); len(d.Locks) != 1 || !d.Locks[0].Here || !d.Locks[0].Asked || d.Locks[0].Kind != "plain" || len(d.Errors) > 0 {
		t.Errorf("the others read %+v", d)
	}
}

// The console looks up no name that no lock may have.
func TestLookUpOfAReservedName(t *testing.T) {
	t.Parallel()
	s, _ := locktest.NewOnOwnServer(t, patient("shop"))
	base := web(t, console.Handler(s.System, quick))
	for name, word := range map[string]string{"lockkeeper_wait_queue:{a}": "reserved", "{a}": "share its queue"} {
		if d := read(t, base+"data.json?name="+url.QueryEscape(name)); len(d.Errors) != 1 || !strings.Contains(fmt.Sprint(d.Errors), word) {
			t.Errorf("%s: the errors are %v", name, d.Errors)
		}
	}
}

// The error of a lock that this System has is for all who see its row, and for no others.
func TestErrorOfAListedLock(t *testing.T) {
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

// The end of a look-up is no end of a hold: the story of a lock does not say that it is not held any more.
func TestStoryAfterALookUp(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	there := locktest.Open(t, k.Server.URL(), patient("billing"))
	locktest.Acquire(t, there.Lock(k.LockName))
	base := web(t, console.Handler(s.System, quick))
	page := "lock?name=" + url.QueryEscape(k.LockName)
	get(t, base+page)
	all := stream(t, base+"events")
	all.next(t)
	all.next(t)
	if text := get(t, base+page); strings.Contains(text, "any more") || !strings.Contains(text, "is held by billing") {
		t.Errorf("the story is %s", text)
	}
}

// A look-up that fails does not keep the console from noting what becomes of the locks of this System.
func TestStoryBesideAFailedLookUp(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	k.Do(t, "HSET", "chosen", "password", "secret")
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	hold := locktest.Acquire(t, s.Lock(k.LockName))
	base := web(t, console.Handler(s.System, quick))
	fails, all := stream(t, base+"events?name=chosen"), stream(t, base+"events")
	fails.awaits(t, `class="error"`)
	all.awaits(t, "this process")
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	all.awaits(t, "holds no lock")
	if text := get(t, base+"lock?name="+url.QueryEscape(k.LockName)); !strings.Contains(text, "is neither held nor waited for here any more") {
		t.Errorf("the story is %s", text)
	}
}

// While Redis does not answer, each look-up has its own error, and none that of another.
func TestLookUpsWithoutRedis(t *testing.T) {
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
		if text := strings.Join(read(t, base+"data.json?name="+name).Errors, "; "); strings.Count(text, "chosen") != 1 || !strings.Contains(text, name) {
			t.Errorf("the viewer of %s reads %s", name, text)
		}
	}
	if text := strings.Join(read(t, base+"data.json").Errors, "; "); text == "" || strings.Contains(text, "chosen") {
		t.Errorf("the others read %q", text)
	}
}
