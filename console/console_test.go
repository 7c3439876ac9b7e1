package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}

// patient is a Config for a busy machine: no call times out, and no lease is renewed.
func patient(application string) lockkeeper.Config {
	return lockkeeper.Config{Application: application, Watchdog: time.Hour, CallTimeout: time.Minute}
}

// data has the documented fields of data.json.
type data struct {
	Client  string
	Systems []process
	Locks   []struct {
		Name, Kind, Owner         string
		State, Note               string
		Held, Here, Shared, Asked bool
		Process                   process
		Since                     time.Time
		Token, Lease              int64
		Count, Waiters, Listeners int
	}
	Held, Waiters int
	MoreLocks     int  `json:"more_locks"`
	SystemsCut    bool `json:"systems_cut"`
	Counts        struct{ Grants, Losses int64 }
	Events        []struct{ Lock, Text string }
	Errors        []string
}

type process struct {
	Client, Application, Host string
	PID                       int
	Here                      bool
}

// web serves a console at /locks/.
func web(t *testing.T, h http.Handler) (base string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL + "/locks/"
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, _ := http.NewRequestWithContext(locktest.Within(t), http.MethodGet, url, nil)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, response.Status, err, body)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return string(body)
}

func read(t *testing.T, url string) (d data) {
	t.Helper()
	locktest.OK(t, json.Unmarshal([]byte(get(t, url)), &d))
	return d
}

// quick makes the console refresh for each request of a test.
var quick = console.WithInterval(0)

// The page agrees with Redis about locks that this System holds, and about locks that other clients hold, if this
// System waits for them or a viewer looks them up.
func TestPage_AgreesWithRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	prefix := redistest.Name(t)
	open := func(application string) *locktest.Site {
		cfg := patient(application)
		cfg.KeyPrefix = prefix
		return locktest.Open(t, server.URL(), cfg)
	}
	here, there := open("shop"), open("billing")
	base := web(t, console.Handler(here.System, quick))
	locktest.Acquire(t, here.FencedLock("mine"))
	hold := locktest.Acquire(t, here.FencedLock("mine2"))
	locktest.AcquireIn(t, hold.Context(), here.FencedLock("mine2"))
	locktest.Acquire(t, there.Lock("waited"))
	locktest.Acquire(t, there.ReadWriteLock("looked up").Read())
	ctx, cancel := context.WithCancel(locktest.Within(t))
	waits, alsoWaits := locktest.AcquireSoon(ctx, here.Lock("waited")), locktest.AcquireSoon(ctx, here.Lock("waited"))
	locktest.AwaitWaiters(t, here.Lock("waited"), 2)
	channel := "redisson_lock__channel:{" + prefix + "waited}"
	server.AwaitSubscribers(t, channel, 1)

	began := time.Now()
	all := read(t, base+"data.json")
	all.Locks = append(all.Locks, read(t, base+"data.json?kind=read_write&name=looked+up").Locks...)
	host, _ := os.Hostname()
	want := map[string]struct {
		owner *locktest.Site
		kind  string
		count int
		token int64
	}{"mine": {here, "fenced", 1, 1}, "mine2": {here, "fenced", 2, 1}, "waited": {there, "plain", 1, 0}, "looked up": {there, "read_write", 1, 0}}
	if len(all.Locks) != len(want) {
		t.Errorf("there are %d locks: %+v", len(all.Locks), all.Locks)
	}
	page := get(t, base)
	for _, l := range all.Locks {
		w := want[l.Name]
		ttl, _ := server.Do(t, "PTTL", prefix+l.Name).AsInt64()
		fields, _ := server.Do(t, "HGETALL", prefix+l.Name).AsStrMap()
		owner := fields[l.Owner] == fmt.Sprint(w.count) && strings.HasPrefix(l.Owner, w.owner.ID())
		if !owner || !l.Held || l.Kind != w.kind || l.Count != w.count || l.Token != w.token || l.Here != (w.owner == here) {
			t.Errorf("in Redis there is %v, and the page has %+v", fields, l)
		}
		if renewed := time.Since(began).Milliseconds() + 11_000; l.Lease < ttl-renewed || l.Lease > ttl+renewed || l.Since.After(time.Now()) {
			t.Errorf("the TTL of %s is %d ms, and the page has %d ms, since %v", l.Name, ttl, l.Lease, l.Since)
		}
		if waited := l.Name == "waited"; waited && (l.Waiters != 2 || l.Listeners != 1) || !waited && l.Waiters+l.Listeners > 0 {
			t.Errorf("%s has %d waiters here, and %d processes", l.Name, l.Waiters, l.Listeners)
		}
		application := map[bool]string{true: "shop", false: "billing"}[w.owner == here]
		if l.Process.PID != os.Getpid() || l.Process.Host != host || l.Process.Application != application {
			t.Errorf("%s is held by %+v", l.Name, l.Process)
		}
		if l.Name != "looked up" && !strings.Contains(page, ">"+l.Name+"</a>") {
			t.Errorf("the page does not have %s", l.Name)
		}
	}
	if len(all.Systems) != 2 || all.Systems[0].Application != "billing" ||
		all.Systems[0].Client != there.ID() || !all.Systems[1].Here || all.Client != here.ID() {
		t.Errorf("the Systems are %+v", all.Systems)
	}
	if all.Held != 2 || all.Waiters != 2 || !strings.Contains(page, "billing <small>on "+html.EscapeString(host)) {
		t.Errorf("%d held, %d waiting: %s", all.Held, all.Waiters, page)
	}
	cancel()
	locktest.ExpectEnd(t, waits, context.Canceled)
	locktest.ExpectEnd(t, alsoWaits, context.Canceled)
}

// Names and texts from Redis are escaped on every page, and the link of a lock leads to its page.
func TestNames_AreEscaped(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	const evil = `"><script>alert('x')</script>&amp;{{.}}`
	journal := console.NewJournal()
	cfg := journal.Attach(patient(evil + "app"))
	cfg.KeyPrefix = redistest.Name(t)
	s := locktest.Open(t, server.URL(), cfg)
	base := web(t, console.Handler(s.System, quick, console.WithForceRelease(), console.WithJournal(journal)))
	locktest.Acquire(t, s.Lock(evil+"lost"))
	locktest.ForceRelease(t, s.Lock(evil+"lost"), true)
	locktest.Acquire(t, s.Lock(evil))
	pages := map[string]string{"all": get(t, base), "filtered": get(t, base+"?q="+url.QueryEscape(evil)), "events": stream(t, base+"events").next(t)}
	link := regexp.MustCompile(`href="(lock\?[^"]*)">[^<]*\{\{\.}}</a>`).FindStringSubmatch(pages["all"])
	if link == nil {
		t.Fatalf("there is no link: %s", pages["all"])
	}
	pages["one"] = get(t, base+html.UnescapeString(link[1]))
	for name, text := range pages {
		if strings.Contains(text, "<script>") || strings.Contains(text, "alert('x')") ||
			!strings.Contains(text, html.EscapeString(evil)) && !strings.Contains(text, "&#34;&gt;&lt;script&gt;alert(&#39;x&#39;)") {
			t.Errorf("the page %s has the script, or not its escaped text: %s", name, text)
		}
	}
	if !strings.Contains(pages["one"], "this process") {
		t.Errorf("the page of the lock does not name its holder: %s", pages["one"])
	}
}

// streaming is a browser's stream of events.
type streaming struct {
	body  io.ReadCloser
	lines chan string
}

func stream(t *testing.T, url string) *streaming {
	t.Helper()
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	s := &streaming{response.Body, make(chan string, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(s.lines)
		var text strings.Builder
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if line, more := strings.CutPrefix(lines.Text(), "data: "); more {
				text.WriteString(line + "\n")
			} else if lines.Text() == "" {
				s.lines <- text.String()
				text.Reset()
			}
		}
	}()
	t.Cleanup(func() {
		_ = response.Body.Close()
		<-ended
	})
	return s
}

func (s *streaming) next(t *testing.T) string {
	t.Helper()
	return locktest.Await(t, "the next event", s.lines)
}

// awaits waits for an event that matches.
func (s *streaming) awaits(t *testing.T, pattern string) {
	t.Helper()
	for began := time.Now(); ; {
		switch event := s.next(t); {
		case regexp.MustCompile(pattern).MatchString(event):
			return
		case time.Since(began) > redistest.Limit:
			t.Fatalf("no event matches %q: %s", pattern, event)
		}
	}
}

// A lock is force-released only with the option, and only for the console's own pages.
func TestForceRelease_NeedsTheOption(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	cfg := patient("")
	cfg.KeyPrefix = redistest.Name(t)
	s := locktest.Open(t, server.URL(), cfg)
	open, closed := web(t, console.Handler(s.System, quick, console.WithForceRelease())), web(t, console.Handler(s.System, quick))
	owners := func(l *lockkeeper.Lock) []string {
		status := locktest.Must(l.Inspect(locktest.Within(t)))(t)
		return status.Owners
	}
	post := func(base, kind string, owners []string, header ...string) int {
		request, _ := http.NewRequestWithContext(
			locktest.Within(t), http.MethodPost, base+"release",
			strings.NewReader(url.Values{"name": {kind}, "kind": {kind}, "owner": owners}.Encode()),
		)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response := locktest.Must((&http.Transport{DisableKeepAlives: true}).RoundTrip(request))(t)
		defer response.Body.Close()
		return response.StatusCode
	}
	for kind, l := range map[string]*lockkeeper.Lock{
		"plain": s.Lock("plain"), "fenced": s.FencedLock("fenced"), "fair": s.FairLock("fair"), "read_write": s.ReadWriteLock("read_write").Write(),
	} {
		hold := locktest.Acquire(t, l)
		own, by := strings.TrimSuffix(open, "/locks/"), owners(l)
		for what, code := range map[string]int{
			"without the option": post(closed, kind, by, "Origin", strings.TrimSuffix(closed, "/locks/")), "from another site": post(open, kind, by, "Sec-Fetch-Site", "cross-site"),
			"from another origin": post(open, kind, by, "Origin", "http://evil.example"), "from a sibling": post(open, kind, by, "Sec-Fetch-Site", "same-site", "Origin", own),
		} {
			if code != http.StatusForbidden || !hold.Valid() {
				t.Errorf("%s, %s: %d, and the hold is good: %v", kind, what, code, hold.Valid())
			}
		}
		if page := get(t, open+"lock?name="+kind+"&kind="+kind); !strings.Contains(page, `name="owner" value="`+by[0]+`"`) {
			t.Errorf("%s: the form does not name the owner %s: %s", kind, by, page)
		}
		locktest.Release(t, hold)
		hold = locktest.Acquire(t, l) // as the next owner
		for what, code := range map[string]int{
			"another owner": post(open, kind, by, "Origin", own), "no owner": post(open, kind, nil, "Origin", own),
			"not an owner": post(open, kind, []string{"x"}, "Origin", own),
		} {
			want := http.StatusBadRequest
			if what == "another owner" {
				want = http.StatusSeeOther
			}
			if code != want || !hold.Valid() {
				t.Errorf("%s, %s: %d, and the hold is good: %v", kind, what, code, hold.Valid())
			}
		}
		if code := post(open, kind, owners(l), "Sec-Fetch-Site", "same-origin", "Origin", own); code != http.StatusSeeOther {
			t.Errorf("%s: a forced release from the own page: %d", kind, code)
		}
		locktest.Await(t, "the loss", hold.Context().Done())
		locktest.IsError(t, hold.Err(), lockkeeper.ErrLost)
	}
	readers := locktest.Acquire(t, s.ReadWriteLock("read_write").Read())
	post(open, "read_write", owners(s.ReadWriteLock("read_write").Read()))
	locktest.IsError(t, readers.Err(), lockkeeper.ErrLost)
	if code := post(open, "no kind", nil); code != http.StatusBadRequest {
		t.Errorf("an unknown kind: %d", code)
	}
	if page := get(t, open+"lock?name=plain"); !strings.Contains(page, `action="release"`) ||
		!strings.Contains(page, "was force-released with the console") {
		t.Errorf("the page of the lock: %s", page)
	}
	if page := get(t, closed+"lock?name=plain"); strings.Contains(page, "release\"") {
		t.Errorf("the page offers a forced release without the option: %s", page)
	}
}

// The journal records losses while there is no viewer, and passes everything on to the logger. The history of a lock
// has the events of the journal and of the console in order of time.
func TestJournal_RecordsLossesWithoutAViewer(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	var lines strings.Builder
	journal := console.NewJournal()
	cfg := patient("shop")
	cfg.KeyPrefix, cfg.Logger = redistest.Name(t), slog.New(slog.NewTextHandler(&lines, nil))
	cfg = journal.Attach(cfg)
	s := locktest.Open(t, server.URL(), cfg)
	base := web(t, console.Handler(s.System, quick, console.WithJournal(journal)))
	locktest.Acquire(t, s.Lock("orders"))
	watching := stream(t, base+"events?name=orders")
	watching.awaits(t, `is held by this process`)
	locktest.ForceRelease(t, s.Lock("orders"), true)
	watching.awaits(t, `(?s)(is free.*lease lost: .*forced|lease lost: .*forced.*is free).*is held by this process`) // a refresh may be faster than the log
	var d data
	redistest.Eventually(t, "the loss", func() bool { d = read(t, base+"data.json"); return d.Counts.Losses == 1 })
	if d.Counts.Grants != 1 || len(d.Events) != 1 || d.Events[0].Lock != "orders" {
		t.Errorf("the journal has %+v, %+v", d.Counts, d.Events)
	}
	for range 25 {
		locktest.Acquire(t, s.Lock("busy"))
		locktest.ForceRelease(t, s.Lock("busy"), true)
	}
	redistest.Eventually(t, "the losses", func() bool { d = read(t, base+"data.json"); return d.Counts.Losses == 26 })
	if busy := len(d.Events); busy != 21 || d.Events[20].Lock != "orders" {
		t.Errorf("a busy lock and another one have %d events", busy)
	}
	locktest.Stop(t, s)
	locktest.ExpectWords(t, lines.String(), "lease lost", "orders")
	for range watching.lines { // the stream ends with the System
	}
}

// A semaphore is listed while requests wait for it in this System, and has a page.
func TestSemaphore_IsListedWhileRequestsWait(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, patient("shop"))
	base := web(t, console.Handler(s.System, quick))
	ctx, cancel := context.WithCancel(locktest.Within(t))
	defer cancel()
	k.Do(t, "SET", k.Name, "0")
	ended := make(chan error, 1)
	go func() { ended <- s.Semaphore(k.LockName).Acquire(ctx, 1) }()
	s.AwaitWaiting(t, 1)
	d := read(t, base+"data.json")
	if len(d.Locks) != 1 || d.Locks[0].Name != k.LockName || d.Locks[0].Kind != "semaphore" ||
		d.Locks[0].State != "has 0 free permits" || d.Waiters != 1 || len(d.Errors) > 0 {
		t.Errorf("the console has %+v", d)
	}
	for _, path := range []string{"", "lock?kind=semaphore&name=" + url.QueryEscape(k.LockName)} {
		if page := get(t, base+path); !strings.Contains(page, "1 here <small>for ") || strings.Contains(page, ">free<") {
			t.Errorf("the page %q shows no waiter here, or a free semaphore: %s", path, page)
		}
	}
	cancel()
	locktest.IsError(t, locktest.Await(t, "the end of the wait", ended), context.Canceled)
}
