package console_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// refreshCommands returns how many commands for refreshes the server has received.
func refreshCommands(t *testing.T, server *redistest.Server) int64 {
	t.Helper()
	return server.Calls(t)["evalsha"]
}

// All viewers share one refresh, another request within the interval causes no commands, and without viewers there are
// no refreshes.
func TestViewers_ShareARefresh(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	s.Acquire(t, k)
	base := web(t, console.Handler(s.System, console.WithInterval(time.Hour)))
	get(t, base)
	first := refreshCommands(t, k.Server)
	for range 20 {
		stream(t, base+"events").next(t)
		read(t, base+"data.json")
	}
	if more := refreshCommands(t, k.Server) - first; more != 0 {
		t.Errorf("40 more viewers cost %d scripts", more)
	}
	if get(t, base+"lock?name=another"); refreshCommands(t, k.Server) == first {
		t.Error("the lock that is looked up is not inspected")
	}

	s2 := locktest.Open(t, k.Server.URL(), patient(""))
	busy := web(t, console.Handler(s2.System, quick))
	watching := stream(t, busy+"events")
	watching.next(t)
	watching.next(t)
	_ = watching.body.Close()
	before, since := refreshCommands(t, k.Server), time.Now()
	redistest.Eventually(t, "five intervals without a refresh", func() bool {
		if now := refreshCommands(t, k.Server); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// A server that shuts down does not wait for viewers.
func TestStreams_EndWithTheServer(t *testing.T) {
	t.Parallel()
	s, _ := locktest.NewOnOwnServer(t, patient(""))
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(console.Handler(s.System, console.WithContext(ctx), console.WithInterval(time.Hour)))
	server.Config.RegisterOnShutdown(stop)
	stream(t, server.URL+"/events").next(t)
	locktest.InTime(t, "Shutdown", func() {
		locktest.Check(t, server.Config.Shutdown(locktest.Within(t)))
	})
}

// Look-ups of many names cause only a few refreshes per second.
func TestLookUps_OfManyNamesShareRefreshes(t *testing.T) {
	t.Parallel()
	s, _ := locktest.NewOnOwnServer(t, patient(""))
	base := web(t, console.Handler(s.System, console.WithInterval(time.Hour)))
	get(t, base)
	began := time.Now()
	for i := range 6 {
		read(t, fmt.Sprint(base, "data.json?name=", i))
	}
	if passed := time.Since(began); passed < time.Second {
		t.Errorf("6 consecutive refreshes took %v", passed)
	}
}

// pipes is a listener whose connections have no buffer.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A viewer that does not read does not delay others, and its stream is closed.
func TestViewers_SlowOneDelaysNoOther(t *testing.T) {
	t.Parallel()
	s, k := locktest.New(t, patient(""))
	s.Acquire(t, k)
	left := make(chan struct{})
	h := console.Handler(s.System, quick)
	listener := make(pipes)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		close(left)
	})}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(listener) }()
	slow, conn := net.Pipe()
	listener <- conn
	locktest.Must(fmt.Fprintf(slow, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
	response, err := http.ReadResponse(bufio.NewReader(slow), nil) // it reads no further
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the viewer is answered %v, %v", response, err)
	}
	others := stream(t, web(t, h)+"events")
	for range 10 {
		others.next(t)
	}
	select {
	case <-left:
		t.Error("the viewer was not served any longer at once")
	default:
	}
	locktest.Await(t, "the end of the viewer that reads nothing", left)
	others.next(t)
	_ = slow.Close()
	close(listener)
	_ = server.Close()
	<-serving
}

// The numbers of rows and of viewers are bounded, and the filter finds further locks.
func TestBounds_HoldForRowsAndViewers(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient("shop"))
	for i := range 130 {
		locktest.Acquire(t, s.Lock(fmt.Sprintf("lock-%03d", i)))
	}
	h := console.Handler(s.System, console.WithInterval(10*time.Second))
	base := web(t, h)
	before := refreshCommands(t, k.Server)
	d := read(t, base+"data.json")
	if cost := refreshCommands(t, k.Server) - before; len(d.Locks) != 100 || d.MoreLocks != 30 || d.Held != 130 || cost > 120 {
		t.Errorf("%d rows, and %d more, of %d, for %d scripts", len(d.Locks), d.MoreLocks, d.Held, cost)
	}
	if d = read(t, base+"data.json?q=lock-12"); len(d.Locks) != 10 || d.MoreLocks != 0 {
		t.Errorf("the filter finds %d", len(d.Locks))
	}
	var last string // of the table: Redis is asked about it only for viewers that look it up
	if d = read(t, base+"data.json?page=1"); len(d.Locks) == 30 {
		last = d.Locks[29].Name
	}
	redistest.Eventually(t, "the last one to be looked up", func() bool { // a busy machine may show it without at first
		one := read(t, base+"data.json?name="+last)
		return len(one.Locks) == 1 && one.Locks[0].Asked && one.Locks[0].Here
	})
	if d = read(t, base+"data.json?page=1&q="+last); len(d.Locks) > 0 {
		t.Errorf("one row has a second page: %+v", d.Locks)
	}
	if d = read(t, base+"data.json?q="+last); len(d.Locks) != 1 || d.Locks[0].Asked {
		t.Errorf("another viewer sees %q as %+v", last, d.Locks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 110)
	for range 110 {
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events", nil))
			ended <- struct{}{}
		}()
	}
	redistest.Eventually(t, "a refusal of one viewer too many", func() bool {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/data.json", nil))
		return w.Code == http.StatusServiceUnavailable
	})
	cancel()
	for range 110 {
		locktest.Await(t, "the end of a viewer", ended)
	}
	get(t, base)
}

// While Redis does not answer, the page shows the error and the state of the System.
func TestPage_ShowsThatRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, lockkeeper.Config{CallTimeout: 300 * time.Millisecond})
	s.Acquire(t, k)
	base := web(t, console.Handler(s.System, quick, console.WithFleet(k.Server.Client(t), "")))
	k.Server.Pause(t)
	d := read(t, base+"data.json")
	if len(d.Errors) == 0 || len(d.Locks) != 1 || !d.Locks[0].Here || d.Locks[0].Asked {
		t.Errorf("the data is %+v", d)
	}
	if page := get(t, base); !strings.Contains(page, `class="error"`) {
		t.Errorf("the page does not show the error: %s", page)
	}
	if page := get(t, base+"?fleet=1"); !strings.Contains(page, "Unknown.") || strings.Contains(page, "No lock is held") {
		t.Errorf("the page of all Systems does not show that it knows nothing: %s", page)
	}
	k.Server.Resume(t)
	redistest.Eventually(t, "an end of the errors", func() bool { return len(read(t, base+"data.json").Errors) == 0 })
}

// The page after a forced release shows that release, even within the interval of the last refresh.
func TestPage_ShowsAForcedReleaseAtOnce(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	base := web(t, console.Handler(s.System, console.WithInterval(time.Hour), console.WithForceRelease()))
	locktest.Acquire(t, s.Lock(k.LockName))
	list := stream(t, base+"events")
	list.next(t)
	query := "?name=" + url.QueryEscape(k.LockName)
	owner := regexp.MustCompile(`name="owner" value="([^"]+)"`).FindStringSubmatch(get(t, base+"lock"+query))
	if owner == nil {
		t.Fatal("the page has no owner")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // it follows the redirect to the page
	response, err := client.PostForm(base+"release"+query, url.Values{"owner": owner[1:]})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if text := string(page); err != nil || strings.Contains(text, `name="owner"`) ||
		!strings.Contains(text, "was force-released with the console") {
		t.Errorf("after the release: %v, %s", err, text)
	}
	list.awaits(t, "holds no lock|>free<")
}
