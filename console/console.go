// Package console is a web page about the locks of a System, to be mounted in the service that runs
// it. It shows the holders of locks, the waiters, and the losses.
//
//	mux.Handle("/locks/", http.StripPrefix("/locks", console.Handler(sys)))
//
// The page is live: it is sent again every 2 s to each viewer. data.json has the same data for
// scripts; docs/operate.md describes both.
//
// # Cost
//
// One goroutine refreshes the data for all viewers, at most 100, and only while there are viewers. It asks the System
// for its locks, and Redis for the records of all Systems and for the state of at most 100 locks. The data is used for
// an interval, so further viewers do not cost Redis anything. Each page is written once for all viewers with the same
// query. A lock that the System does not use can be looked up by its name, and is shown only to the viewers that look
// it up; WithFleet lists all locks.
//
// # Access
//
// The console has no authentication: mount it behind the protection of the service's other internal pages, and name the
// hosts of that service with WithHosts, since requests for other hosts are refused. The console changes nothing, unless
// WithForceRelease is given.
package console

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
)

const (
	// maxRows bounds the rows of each table, and the locks of the System about which Redis is asked.
	maxRows = 100
	// maxViewers bounds the viewers at the same time.
	maxViewers = 100
	// maxName bounds the names that are looked up, in bytes, like the names of locks.
	maxName = 512
)

// Option configures Handler. A nil Option, and an Option for a nil Journal, context or client, has no effect.
type Option func(*console)

// WithJournal shows the events of a Journal, and the grants, refusals and losses per second. Without a
// Journal, events are not recorded while there is no viewer.
func WithJournal(j *Journal) Option { return func(c *console) { c.journal = j } }

// WithForceRelease allows viewers to release a lock of any holder; see lockkeeper.Lock.ForceRelease.
// Only the owners that the page has shown are released. The request is a POST, and is refused if a
// page of another origin has sent it (http.CrossOriginProtection).
func WithForceRelease() Option { return func(c *console) { c.mayRelease = true } }

// WithInterval sets how often the page is updated. Default 2 s; at least 100 ms.
func WithInterval(d time.Duration) Option {
	return func(c *console) { c.watch.interval = max(d, 100*time.Millisecond) }
}

// WithContext ends the streams of events when ctx ends, so that http.Server.Shutdown need not wait
// for viewers:
//
//	ctx, stop := context.WithCancel(ctx)
//	server.RegisterOnShutdown(stop)
func WithContext(ctx context.Context) Option {
	if ctx == nil {
		return nil
	}
	return func(c *console) { c.until = ctx }
}

type console struct {
	sys        *lockkeeper.System
	until      context.Context
	journal    *Journal
	mayRelease bool
	hosts      []string
	watch      watch
	// inspector lists all locks in Redis, for fleet; nil without WithFleet.
	inspector *inspect.Inspector
	fleet     watch
	history   history
	write     func(form, *view) ([]byte, error)
}

//go:embed assets
var assets embed.FS

// Handler returns the console of a System. It expects paths without the prefix under which it is
// mounted (http.StripPrefix), and a slash at the end of that prefix in the browser. It has no
// goroutines while no request is served. Streams of events end with the System or WithContext, and
// after a minute at the latest; browsers reopen them.
func Handler(sys *lockkeeper.System, options ...Option) http.Handler {
	return newConsole(sys, options...).handler()
}

func newConsole(sys *lockkeeper.System, options ...Option) *console {
	c := &console{sys: sys, until: context.Background(), write: write}
	c.watch.interval, c.watch.wake = 2*time.Second, make(chan struct{}, 1)
	for _, option := range options {
		if option != nil {
			option(c)
		}
	}
	c.watch.refresh = c.refresh
	c.fleet.refresh, c.fleet.interval, c.fleet.wake = c.refreshFleet, max(fleetPause, c.watch.interval), make(chan struct{}, 1)
	return c
}

func (c *console) handler() http.Handler {
	mux := http.NewServeMux()
	page := c.once(wholePage, "text/html; charset=utf-8")
	mux.HandleFunc("GET /{$}", page)
	mux.HandleFunc("GET /lock", page)
	mux.HandleFunc("GET /events", c.events)
	mux.HandleFunc("GET /data.json", c.once(jsonOfData, "application/json"))
	mux.HandleFunc("POST /release", c.release)
	for _, file := range []string{"style.css", "live.js"} {
		mux.HandleFunc("GET /"+file, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+file)
		})
	}
	return withSecurityHeaders(c.forHosts(http.NewCrossOriginProtection().Handler(mux)))
}

// withSecurityHeaders sets headers that prevent browsers from running, loading or framing anything from outside the
// console.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
				"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// release handles the request to force-release a lock.
func (c *console) release(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	q := queryOf(r)
	lock, owners := c.lock(q.Kind, q.Name), r.Form["owner"]
	switch {
	case !c.mayRelease:
		http.Error(w, "this console may not release locks: it was made without WithForceRelease", http.StatusForbidden)
		return
	case lock == nil:
		http.Error(w, "there is no lock to release by this name and kind", http.StatusBadRequest)
		return
	case len(owners) == 0:
		http.Error(w, "the request names no owner: the lock was free when the page was loaded; load it again", http.StatusBadRequest)
		return
	}
	was, err := lock.ForceRelease(r.Context(), owners...)
	if !was && err == nil && q.Kind == inspect.KindReadWrite { // readers may hold the lock
		was, err = c.sys.ReadWriteLock(q.Name).Read().ForceRelease(r.Context(), owners...)
	}
	if err != nil {
		code := http.StatusBadGateway
		if errors.Is(err, lockkeeper.ErrInvalid) {
			code = http.StatusBadRequest
		}
		http.Error(w, err.Error(), code)
		return
	}
	text := "was no longer held by the owner that was to be force-released"
	if was {
		text = "was force-released"
	}
	c.history.add(Event{At: time.Now(), Lock: q.Name, Text: text + " with the console, from " + r.RemoteAddr, Grave: was})
	c.watch.hasChanged()
	// A relative Location, since only the browser knows the prefix; http.Redirect would resolve it.
	w.Header().Set("Location", "lock?"+q.encode())
	w.WriteHeader(http.StatusSeeOther)
}
