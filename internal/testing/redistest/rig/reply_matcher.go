package rig

import (
	"strings"
	"sync"
)

// replyMatcher pairs the replies of a pipelined connection with its requests.
type replyMatcher struct {
	mu       sync.Mutex
	awaited  []*awaited
	unpaired bool // it subscribes in RESP2, where messages look like replies
}

// awaited is a request that the server has not fully answered yet.
type awaited struct {
	words []string
	event string // what confirms it, of commands that are confirmed by pushes
	left  int    // confirmations to come
}

// sent records a request that is passed on to the server.
func (d *replyMatcher) sent(words []string) {
	a := &awaited{words: words}
	if name := strings.ToLower(words[0]); strings.HasSuffix(name, "subscribe") {
		a.event, a.left = name, max(1, len(words)-1) // one for each channel
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awaited = append(d.awaited, a)
}

// received records a frame from the server. It returns the request that the frame answers,
// or nil. A request with several answers is returned for the first.
func (d *replyMatcher) received(v Value) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unpaired || len(d.awaited) == 0 {
		d.awaited = nil
		return nil
	}
	first := d.awaited[0]
	words, confirmed := first.words, first.left > 0 && v.event() == first.event
	switch {
	case confirmed && v.Kind == '*':
		d.unpaired = true
		return nil
	case v.Kind == '>' && !confirmed: // answers nothing
		return nil
	case confirmed && first.left > 1:
		first.words = nil
		first.left--
	default:
		d.awaited = d.awaited[1:]
	}
	return words
}

// isMessage reports whether a value is a published message.
func (d *replyMatcher) isMessage(v Value) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return v.event() == "message" && (v.Kind == '>' || d.unpaired)
}
