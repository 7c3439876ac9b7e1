package console

import "sync"

// maxKept bounds the texts that are kept for one snapshot, in bytes: some 60 pages of 100 rows.
const maxKept = 4 << 20

// renderings are the texts of a snapshot. Each text is written once, for all viewers with the same query, and kept as
// long as the snapshot.
type renderings struct {
	mu   sync.Mutex // guards the fields below
	made map[rendering]*text
	// size is the size of all finished texts and their queries.
	size int
}

// rendering identifies a text.
type rendering struct {
	query
	form
}

// text is a text, which is complete when done has run.
type text struct {
	done  sync.Once
	bytes []byte
	err   error
}

// get returns a text, which the first call writes. A text that exceeds the limit is not kept: only viewers that ask for
// the text while it is written share it.
func (r *renderings) get(which rendering, write func() ([]byte, error)) ([]byte, error) {
	r.mu.Lock()
	t := r.made[which]
	if t == nil {
		t = &text{}
		if r.made == nil {
			r.made = map[rendering]*text{}
		}
		r.made[which] = t
	}
	r.mu.Unlock()
	t.done.Do(func() {
		t.bytes, t.err = write()
		r.mu.Lock()
		defer r.mu.Unlock()
		if size := len(t.bytes) + len(which.Filter) + len(which.Name) + len(which.Kind); r.size+size > maxKept {
			delete(r.made, which)
		} else {
			r.size += size
		}
	})
	return t.bytes, t.err
}
