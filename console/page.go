package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

const (
	// writeTimeout bounds how long a viewer may take to receive what it is sent.
	writeTimeout = 10 * time.Second
	// streamTime is how long a stream of events lasts, so that a server that shuts down need
	// not wait for its viewers.
	streamTime = time.Minute
)

// view is what one viewer wants to see, and later what it sees.
type view struct {
	*snapshot
	// Filter is what the names of the locks contain. Name and Kind are those of the one lock
	// on a lock's page.
	Filter, Name, Kind string
	// Fleet is set for the locks of all Systems, and Page counts from 0.
	Fleet bool
	Page  int
	// HasFleet reports whether there is such a page.
	HasFleet bool
	// One is that lock, as it is.
	One        *lock
	Journal    bool
	MayRelease bool
}

// viewOf reads a request.
func viewOf(r *http.Request) *view {
	v := &view{Filter: r.FormValue("q"), Name: r.FormValue("name"), Kind: cmp.Or(r.FormValue("kind"), plain)}
	if len(v.Name) > mostName {
		v.Name = ""
	}
	v.Fleet = r.FormValue("fleet") != "" && v.Name == ""
	if page, err := strconv.Atoi(r.FormValue("page")); err == nil && page > 0 && page < mostOfFleet {
		v.Page = page
	}
	return v
}

// query is the view as part of a URL.
func (v *view) query() string {
	q := url.Values{}
	if v.Name != "" {
		q.Set("name", v.Name)
		q.Set("kind", v.Kind)
		return q.Encode()
	}
	if v.Filter != "" {
		q.Set("q", v.Filter)
	}
	if v.Fleet {
		q.Set("fleet", "1")
	}
	if v.Page > 0 {
		q.Set("page", strconv.Itoa(v.Page))
	}
	return q.Encode()
}

// wants is the lock of a lock's page.
func (c *console) wants(v *view) (n named) {
	if c.lock(v.Kind, v.Name) != nil {
		n = named{v.Kind, v.Name}
	}
	return n
}

// show fills the view with what is to be seen of a snapshot.
func (c *console) show(v *view, s *snapshot) *view {
	shown := *s
	shown.Locks = slices.DeleteFunc(slices.Clone(s.Locks), func(l lock) bool {
		return !strings.Contains(l.Name, v.Filter) || v.Name != "" && l.named() != (named{v.Kind, v.Name})
	})
	shown.Locks, shown.MoreLocks = first(shown.Locks[min(v.Page*mostRows, len(shown.Locks)):])
	shown.Systems, shown.MoreSystems = first(shown.Systems)
	events := s.Events
	if c.journal != nil {
		events = append(c.journal.read(), events...)
	}
	shown.Events = of(events, v.Name)
	slices.SortStableFunc(shown.Events, func(a, b Event) int { return b.At.Compare(a.At) })
	shown.Events, _ = first(shown.Events)
	filled := *v
	filled.snapshot, filled.Journal, filled.MayRelease, filled.HasFleet = &shown, c.journal != nil, c.mayRelease, c.looker != nil
	if v.Name != "" && len(shown.Locks) > 0 {
		filled.One = &shown.Locks[0]
	}
	return &filled
}

// first is the beginning of a table, and how many rows are left out.
func first[T any](rows []T) ([]T, int) {
	more := max(len(rows)-mostRows, 0)
	return slices.Clip(rows[:len(rows)-more]), more
}

// Turn is the link to another page.
func (v *view) Turn(by int) string {
	turned := *v
	turned.Page += by
	return "?" + turned.query()
}

// join adds a viewer; if it returns nil, it has answered the request.
func (c *console) join(w http.ResponseWriter, v *view) *viewer {
	of := &c.watch
	if v.Fleet {
		if of = &c.fleet; c.looker == nil {
			http.Error(w, "this console shows its own System alone: it was made without WithFleet", http.StatusNotFound)
			return nil
		}
	}
	viewer := of.join(c.wants(v))
	if viewer == nil {
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
	}
	return viewer
}

// once serves what a single look finds.
func (c *console) once(w http.ResponseWriter, r *http.Request, serve func(*view)) {
	v := viewOf(r)
	viewer := c.join(w, v)
	if viewer == nil {
		return
	}
	s := viewer.next(r.Context())
	viewer.leave()
	if s != nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		serve(c.show(v, s))
	}
}

func (c *console) data(w http.ResponseWriter, r *http.Request) {
	c.once(w, r, func(v *view) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(v.snapshot) // the viewer may be gone
	})
}

func (c *console) page(w http.ResponseWriter, r *http.Request) {
	c.once(w, r, func(v *view) {
		text, err := render("page", v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text) // the viewer may be gone
	})
}

// events sends the live part of a page whenever there is another snapshot.
func (c *console) events(w http.ResponseWriter, r *http.Request) {
	v := viewOf(r)
	viewer := c.join(w, v)
	if viewer == nil {
		return
	}
	defer viewer.leave()
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for a proxy that would hold it back
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.until, cancel)()
	for until := time.Now().Add(streamTime); time.Now().Before(until); {
		s := viewer.next(ctx)
		if s == nil {
			return
		}
		text, err := render("live", c.show(v, s))
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // a viewer that reads nothing is left
		if _, err := w.Write(event(text)); err != nil {
			return
		}
		if err := out.Flush(); err != nil || s.closed {
			return
		}
	}
}

// lineEnds are those of an event stream: each of them ends a field.
var lineEnds = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

// event is a text as an event of a stream. A browser reads each line end in it as \n.
func event(text []byte) []byte {
	return []byte("retry: 1000\ndata: " + lineEnds.Replace(string(text)) + "\n\n")
}

// templates escape whatever Redis and the locks' names bring.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age":   func(at time.Time) string { return age(time.Since(at)) },
	"ms":    func(ms int64) string { return age(time.Duration(ms) * time.Millisecond) },
	"secs":  func(ms int64) float64 { return float64(ms) / 1000 },
	"rate":  func(perSecond float64) string { return fmt.Sprintf("%.3g/s", perSecond) },
	"link":  func(l lock) string { return "lock?" + (&view{Name: l.Name, Kind: l.Kind}).query() },
	"clock": func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") },
	"can":   func(kind string) bool { return slices.Contains(kinds, kind) },
	"kinds": func() []string { return kinds },
	"show":  printable.Text,
	"sum":   func(a, b int) int { return a + b },
}).ParseFS(assets, "assets/page.html"))

func render(name string, v *view) ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, v)
	return b.Bytes(), err
}

// age is a time for people, in one unit or two.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// String says which process it is.
func (s *system) String() string {
	p := lockkeeper.Process{Client: s.Client, Application: s.Application, Host: s.Host, PID: s.PID, Version: s.Version, Seen: time.Duration(s.Seen) * time.Millisecond, Overdue: s.Overdue}
	if s.Since != nil {
		p.Since = *s.Since
	}
	return p.String()
}
