//go:build unix

package redistest

import (
	"strings"
	"sync"
)

// ledger pairs the replies of a pipelined connection with its requests.
type ledger struct {
	mu       sync.Mutex
	awaited  []*awaited
	unpaired bool // what the server sends no longer answers requests one by one
}

// awaited is a request that the server has not fully answered yet.
type awaited struct {
	words []string
	name  string // of the command, in lower case
	left  int    // confirmations to come, of commands that are confirmed by pushes
}

// sent notes a request that is passed on to the server.
func (d *ledger) sent(words []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &awaited{words: words, name: strings.ToLower(words[0])}
	switch a.name {
	case "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		a.left = max(1, len(words)-1) // one for each channel
	case "monitor":
		d.unpaired = true
	case "client":
		if len(words) > 1 && strings.EqualFold(words[1], "reply") {
			d.unpaired = true
		}
	}
	if !d.unpaired {
		d.awaited = append(d.awaited, a)
	}
}

// received notes what the server sent. It gives the request that this answers, or
// nil. A request with several answers is given for the first.
func (d *ledger) received(v value) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unpaired || len(d.awaited) == 0 {
		return nil
	}
	first := d.awaited[0]
	confirmed := first.left > 0 && v.event() == first.name
	switch {
	case confirmed && v.kind == '*': // in RESP2
		d.unpaired = true
		return nil
	case confirmed:
		words := first.words
		first.words = nil
		if first.left--; first.left == 0 {
			d.awaited = d.awaited[1:]
		}
		return words
	case v.kind == '>': // answers nothing
		return nil
	}
	d.awaited = d.awaited[1:]
	return first.words
}

// isMessage tells published messages from everything else.
func (d *ledger) isMessage(v value) bool {
	switch v.event() {
	case "message", "pmessage", "smessage":
		d.mu.Lock()
		defer d.mu.Unlock()
		return v.kind == '>' || d.unpaired
	}
	return false
}

// event is the kind of a push, such as "message" or "subscribe", or of what RESP2
// has in its place.
func (v value) event() string {
	if (v.kind == '>' || v.kind == '*') && len(v.elems) > 0 {
		return v.elems[0].str
	}
	return ""
}
