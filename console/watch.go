package console

import (
	"context"
	"sync"
	"time"
)

// watch looks for all viewers while there are any, and keeps one goroutine for that.
type watch struct {
	interval time.Duration
	// look may take as long as ctx lasts. lookUps are the locks that viewers look up.
	look func(ctx context.Context, lookUps []lockID) *snapshot

	mu      sync.Mutex // guards what follows
	viewers map[*viewer]struct{}
	running bool
	// cancel ends the look under way, and is called when the last viewer has left.
	ctx    context.Context
	cancel context.CancelFunc
	last   *snapshot
	// changes counts what viewers have changed, and shown is how many of that last shows.
	changes, shown int
	// wake ends the wait for the next look: a viewer asks for a lock that the last look did not look up.
	wake chan struct{}
}

// lockID identifies a lock within a System.
type lockID struct{ kind, name string }

// viewer is a request for a page or for its changes.
type viewer struct {
	of *watch
	// lookUp is the lock that it looks up, if any.
	lookUp lockID
	// changed has a value when there is another snapshot.
	changed chan struct{}
	seen    *snapshot
}

const (
	// lookTimeout bounds a look, and so how long a viewer waits for it.
	lookTimeout = 5 * time.Second
	// minPause is the least time from one look to the next, which is made for a viewer that looks up
	// another lock, or has changed something: names that are made up must not keep Redis busy.
	minPause = 200 * time.Millisecond
)

// join adds a viewer; nil if there are too many. The caller must call leave.
func (w *watch) join(lookUp lockID) *viewer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.viewers) >= maxViewers {
		return nil
	}
	v := &viewer{of: w, lookUp: lookUp, changed: make(chan struct{}, 1)}
	if w.last != nil && w.last.fresh(w.interval) && w.last.has(lookUp) && w.shown == w.changes {
		v.changed <- struct{}{}
	} else {
		w.awake()
	}
	if len(w.viewers) == 0 {
		w.viewers = map[*viewer]struct{}{}
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	w.viewers[v] = struct{}{}
	if !w.running {
		w.running = true
		go w.run()
	}
	return v
}

// awake has the goroutine decide anew when it looks next.
func (w *watch) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hasChanged notes that a viewer has changed something. Viewers that join from now on are not shown an earlier look.
func (w *watch) hasChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	w.awake()
}

// leave ends the viewing, and with the last viewer all work.
func (v *viewer) leave() {
	w := v.of
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.viewers, v); len(w.viewers) == 0 {
		w.cancel()
	}
}

// next waits for a snapshot that the viewer has not seen, with the lock that it looks up; nil if ctx ends first.
func (v *viewer) next(ctx context.Context) *snapshot {
	for {
		select {
		case <-v.changed:
		case <-ctx.Done():
			return nil
		}
		v.of.mu.Lock()
		s := v.of.last
		v.of.mu.Unlock()
		if s != v.seen && s.has(v.lookUp) {
			v.seen = s
			return s
		}
	}
}

func (w *watch) run() {
	for {
		w.mu.Lock()
		if len(w.viewers) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		ctx := w.ctx
		wait := time.Duration(0)
		if w.last != nil && w.last.fresh(w.interval) {
			wait = w.interval
			if w.shown != w.changes || w.lacksLookUp() {
				wait = min(wait, minPause)
			}
			wait -= time.Since(w.last.At)
		}
		w.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			w.publish(ctx)
		case <-w.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// lacksLookUp reports whether a viewer looks up a lock that the last look did not.
func (w *watch) lacksLookUp() bool {
	for v := range w.viewers {
		if !w.last.has(v.lookUp) {
			return true
		}
	}
	return false
}

func (w *watch) publish(ctx context.Context) {
	w.mu.Lock()
	changes := w.changes
	var lookUps []lockID
	for v := range w.viewers {
		if v.lookUp.name != "" {
			lookUps = append(lookUps, v.lookUp)
		}
	}
	w.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := w.look(bounded, lookUps)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil || changes != w.changes { // a look that may have come before a change is not shown
		return
	}
	w.last, w.shown = s, changes
	for v := range w.viewers {
		select {
		case v.changed <- struct{}{}:
		default: // it is notified already, and will see the newest
		}
	}
}
