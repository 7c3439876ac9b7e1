package console

import (
	"context"
	"sync"
	"time"
)

// watch refreshes a snapshot for all viewers while there are any, in one goroutine.
type watch struct {
	interval time.Duration
	// refresh returns a new snapshot, at the end of ctx at the latest. lookUps are the locks that viewers look up.
	refresh func(ctx context.Context, lookUps []lockID) *snapshot

	mu      sync.Mutex // guards the fields below
	viewers map[*viewer]struct{}
	running bool
	// ctx is the context of the current refresh.
	ctx context.Context
	// cancel ends the current refresh; it is called when the last viewer has left.
	cancel context.CancelFunc
	last   *snapshot
	// changes is the number of changes that viewers have made.
	changes int
	// shown is the number of changes that last includes.
	shown int
	// wake ends the wait for the next refresh, for a viewer that looks up a lock which last lacks.
	wake chan struct{}
}

// lockID identifies a lock within a System.
type lockID struct{ kind, name string }

// viewer is a request for a page or for its changes.
type viewer struct {
	of *watch
	// lookUp is the lock that the viewer looks up, if any.
	lookUp lockID
	// changed receives a value when there is a new snapshot.
	changed chan struct{}
	seen    *snapshot
}

const (
	// refreshTimeout bounds a refresh, and so the wait of a viewer.
	refreshTimeout = 5 * time.Second
	// minPause is the minimum time between two refreshes, if a viewer looks up another lock or has changed
	// something. It bounds the load of viewers that look up many names.
	minPause = 200 * time.Millisecond
)

// join adds a viewer, on which the caller must call leave. It returns nil if there are too many viewers.
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

// awake makes the goroutine decide again when the next refresh is due.
func (w *watch) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hasChanged records that a viewer has changed something. Viewers that join later do not get an earlier snapshot.
func (w *watch) hasChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	w.awake()
}

// leave removes the viewer. The goroutine ends with the last viewer.
func (v *viewer) leave() {
	w := v.of
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.viewers, v); len(w.viewers) == 0 {
		w.cancel()
	}
}

// next waits for a snapshot that the viewer has not seen and that has its look-up. It returns nil if ctx ends first.
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

// lacksLookUp reports whether a viewer looks up a lock that the last snapshot lacks.
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
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	s := w.refresh(bounded, lookUps)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil || changes != w.changes { // the snapshot may be from before the change
		return
	}
	w.last, w.shown = s, changes
	for v := range w.viewers {
		select {
		case v.changed <- struct{}{}:
		default: // the viewer is notified already, and will get the newest snapshot
		}
	}
}
