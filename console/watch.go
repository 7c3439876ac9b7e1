package console

import (
	"context"
	"sync"
	"time"
)

// watch looks for all viewers, on one goroutine, while there are any.
type watch struct {
	interval time.Duration
	// look may take as long as ctx lasts. names are the locks that somebody looks at.
	look func(ctx context.Context, names []named) *snapshot

	mu      sync.Mutex // guards what follows
	viewers map[*viewer]struct{}
	running bool
	// cancel ends the look under way, and is called when the last viewer has left.
	ctx    context.Context
	cancel context.CancelFunc
	last   *snapshot
	// sooner ends the wait for the next look: somebody wants what the last one has not.
	sooner chan struct{}
}

// named is a lock that was asked for by name.
type named struct{ kind, name string }

// viewer is a request that wants to see.
type viewer struct {
	of *watch
	// wants is the lock that it looks at, besides those that all see.
	wants named
	// news has a value when there is another snapshot.
	news chan struct{}
	seen *snapshot
}

const (
	// lookTimeout bounds a look. Whoever wants to see waits for no longer.
	lookTimeout = 5 * time.Second
	// soonest is how soon after a look the next one is made for somebody who wants more than that
	// has: names that are made up must not keep Redis busy.
	soonest = 200 * time.Millisecond
)

// join adds a viewer; nil if there are too many. Who joins must leave.
func (w *watch) join(wants named) *viewer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.viewers) >= mostViewers {
		return nil
	}
	v := &viewer{of: w, wants: wants, news: make(chan struct{}, 1)}
	if w.last != nil && w.last.fresh(w.interval) && w.last.has(wants) {
		v.news <- struct{}{}
	} else {
		select {
		case w.sooner <- struct{}{}:
		default:
		}
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

// leave ends the viewing, and with the last viewer all work.
func (v *viewer) leave() {
	w := v.of
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.viewers, v); len(w.viewers) == 0 {
		w.cancel()
	}
}

// next waits for a snapshot that the viewer has not seen; nil if ctx ends first.
func (v *viewer) next(ctx context.Context) *snapshot {
	for {
		select {
		case <-v.news:
		case <-ctx.Done():
			return nil
		}
		v.of.mu.Lock()
		s := v.of.last
		v.of.mu.Unlock()
		if s != v.seen {
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
			if w.wanted() {
				wait = min(wait, soonest)
			}
			wait -= time.Since(w.last.At)
		}
		w.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			w.publish(ctx)
		case <-w.sooner:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// wanted reports whether somebody looks at a lock that the last snapshot does not have.
func (w *watch) wanted() bool {
	for v := range w.viewers {
		if !w.last.has(v.wants) {
			return true
		}
	}
	return false
}

func (w *watch) publish(ctx context.Context) {
	w.mu.Lock()
	var names []named
	for v := range w.viewers {
		if v.wants.name != "" {
			names = append(names, v.wants)
		}
	}
	w.mu.Unlock()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := w.look(bounded, names)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.last = s
	for v := range w.viewers {
		select {
		case v.news <- struct{}{}:
		default: // it is told already, and will see the newest
		}
	}
}
