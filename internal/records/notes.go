package records

import (
	"container/list"
	"strconv"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Notes are the notes of the holds of a System, for its record. All goroutines may use it.
type Notes struct {
	// Changed is called after each change; it must not block.
	Changed func()

	mu    sync.Mutex // guards the fields below
	holds map[*request.Call]*list.Element
	order list.List // of note, the longest hold first
}

// note is the note of a term, or of a permit.
type note struct{ of, text string }

// Add adds the note of a request that was granted in that term, if the request has a note. A re-entry joins the hold of
// another request, first.
func (n *Notes) Add(call *request.Call, first any, term uint64) {
	if call.Note == "" || first != any(call) {
		return
	}
	of := strconv.FormatUint(term, 10)
	if id, is := call.PermitID(); is {
		of = protocol.OfPermit(id.String())
	}
	n.mu.Lock()
	if n.holds == nil {
		n.holds = map[*request.Call]*list.Element{}
	}
	n.holds[call] = n.order.PushBack(note{of, call.Note})
	n.mu.Unlock()
	n.Changed()
}

// Remove removes the note of a hold that has ended; it may be called again.
func (n *Notes) Remove(call *request.Call) {
	if call.Note == "" {
		return
	}
	n.mu.Lock()
	e := n.holds[call]
	if e != nil {
		delete(n.holds, call)
		n.order.Remove(e)
	}
	n.mu.Unlock()
	if e != nil {
		n.Changed()
	}
}

// maxNotes bounds the notes that are looked at. A record has room for fewer notes.
const maxNotes = 1000

// AddTo adds the notes to a record: for each term the note of its first hold, since all holds of a term have one owner
// field.
func (n *Notes) AddTo(record *Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := map[string]bool{}
	looked := 0
	for e := n.order.Front(); e != nil && looked < maxNotes; e = e.Next() {
		looked++
		if one := e.Value.(note); !seen[one.of] {
			seen[one.of] = true
			record.Notes = append(record.Notes, protocol.Note(one.of, one.text))
		}
	}
}
