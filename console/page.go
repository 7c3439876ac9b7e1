package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
)

const (
	// writeTimeout bounds how long a viewer may take to receive a page or an event.
	writeTimeout = 10 * time.Second
	// streamTime bounds a stream of events, so that the shutdown of the server does not have to wait longer.
	streamTime = time.Minute
)

// join adds a viewer, on which the caller must call leave. If it returns nil, it has answered the request.
func (c *console) join(w http.ResponseWriter, q query) *viewer {
	if _, known := kinds.Named(q.Kind); q.Name != "" && !known {
		http.Error(w, "the kind is unknown: use "+strings.Join(slices.Concat(lockKinds, synchronizerKinds), ", "), http.StatusBadRequest)
		return nil
	}
	of := &c.watch
	if q.Fleet {
		if of = &c.fleet; c.inspector == nil {
			http.Error(w, "this console shows only its own System: it was created without WithFleet", http.StatusNotFound)
			return nil
		}
	}
	viewer := of.join(c.lookedUp(q))
	if viewer == nil {
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
	}
	return viewer
}

// lookedUp returns the lock of the page of one lock, if it can be looked up.
func (c *console) lookedUp(q query) (id lockID) {
	if q.Name != "" && (slices.Contains(lockKinds, q.Kind) || slices.Contains(synchronizerKinds, q.Kind)) {
		id = lockID{q.Kind, q.Name}
	}
	return id
}

// text returns the text of a snapshot for a query. The text is written once for all viewers with that query.
func (c *console) text(s *snapshot, q query, f form) ([]byte, error) {
	return s.renderings.get(rendering{q, f}, func() ([]byte, error) { return c.write(f, c.view(s, q)) })
}

// once serves one snapshot.
func (c *console) once(f form, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := queryOf(r)
		viewer := c.join(w, q)
		if viewer == nil {
			return
		}
		s := viewer.next(r.Context())
		viewer.leave()
		if s == nil {
			return
		}
		text, err := c.text(s, q, f)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(text) // the viewer may be gone
	}
}

// events sends the live part of a page whenever there is another snapshot.
func (c *console) events(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r)
	viewer := c.join(w, q)
	if viewer == nil {
		return
	}
	defer viewer.leave()
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // disables buffering in nginx
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.until, cancel)()
	for until := time.Now().Add(streamTime); time.Now().Before(until); {
		s := viewer.next(ctx)
		if s == nil {
			return
		}
		text, err := c.text(s, q, livePart)
		if err != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // closes the stream of a viewer that does not read
		if _, err := w.Write(text); err != nil {
			return
		}
		if err := out.Flush(); err != nil || s.closed {
			return
		}
	}
}

// lineEnds replaces the line ends of an event stream, each of which ends a field.
var lineEnds = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

// event returns a text as an event of a stream. A browser reads each line end in it as \n.
func event(text []byte) []byte {
	return []byte("retry: 1000\ndata: " + lineEnds.Replace(string(text)) + "\n\n")
}
