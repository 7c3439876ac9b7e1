package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Recorder writes a history, one JSON object a line, each in one write, so that a
// kill loses nothing that was recorded.
type Recorder struct {
	mu   sync.Mutex
	file *os.File
}

// Record begins a history in a new file.
func Record(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file}, nil
}

// Add writes an event. A history that cannot be written is no history: it panics.
func (r *Recorder) Add(e Event) {
	line, err := json.Marshal(e)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("the history cannot be written: %v", err))
	}
}

// Close ends the history.
func (r *Recorder) Close() error { return r.file.Close() }
