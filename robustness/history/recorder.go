package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Recorder writes a history, one JSON object a line, each in one write, so that a
// kill loses no recorded event.
type Recorder struct {
	mu   sync.Mutex // guards what follows
	file *os.File
	// pending are the requests without an answer. since is when the last one was answered, or when the first of pending
	// was made if that is later.
	pending map[int]struct{}
	since   time.Duration
}

// Record starts a history in a new file.
func Record(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file, pending: map[int]struct{}{}}, nil
}

// Add writes an event. It panics if that fails, since the history would be incomplete.
func (r *Recorder) Add(e Event) {
	line, err := json.Marshal(e)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.count(e)
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the history cannot be written: %v", err))
	}
}

func (r *Recorder) count(e Event) {
	switch e.Stage {
	case Asked:
		if len(r.pending) == 0 {
			r.since = e.At
		}
		r.pending[e.ID] = struct{}{}
	case Granted, Refused:
		delete(r.pending, e.ID)
		r.since = e.At
	}
}

// Silence returns how many requests have no answer, and since when none has been answered.
func (r *Recorder) Silence() (pending int, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending), r.since
}

// Close closes the file.
func (r *Recorder) Close() error { return r.file.Close() }
