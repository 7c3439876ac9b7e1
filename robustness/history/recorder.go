package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Recorder writes a history, one JSON object a line, each in one write, so that a
// kill loses no recorded event.
type Recorder struct {
	mu   sync.Mutex
	file *os.File
}

// Record starts a history in a new file.
func Record(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file}, nil
}

// Add writes an event. It panics if that fails, since the history would be incomplete.
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

// Close closes the file.
func (r *Recorder) Close() error { return r.file.Close() }
