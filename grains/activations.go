package grains

import "sync/atomic"

// activations decides what a member runs, in one term after another. It does no I/O, and is used by one goroutine. P is
// a process that has asked for a grain.
//
// A grain is registered, runs, and stops. A process that asks before Redis has replied to the registration waits for
// the reply. A process that asks while the grain stops is refused, and asks again.
type activations[P any] struct {
	all map[string]*activation[P]
	// open: there is a term that has not begun to end.
	open bool
	// late is the number of grains of the term that have stopped after its lease had ended.
	late int
}

// activation is a grain from its registration until it has stopped.
type activation[P any] struct {
	grain string
	// runs is false until Redis has replied to the registration.
	runs bool
	// token is the token of the registration.
	token   int64
	waiting []P
	// stopping is set by the grain.
	stopping *atomic.Bool
}

// answer is the answer to a process that has asked for a grain.
type answer uint8

const (
	// later: the answer follows when Redis has replied to the registration.
	later answer = iota
	refused
	running
)

// ask is called when a process asks for a grain. If register is true, the caller registers the activation; with the
// answer running, the activation runs already.
func (a *activations[P]) ask(grain string, from P) (it *activation[P], what answer, register bool) {
	it = a.all[grain]
	switch {
	case !a.open || it != nil && it.stopping.Load():
		return nil, refused, false
	case it == nil:
		return a.add(grain, from), later, true
	case it.runs:
		return it, running, false
	}
	it.waiting = append(it.waiting, from)
	return it, later, false
}

func (a *activations[P]) add(grain string, waiting ...P) *activation[P] {
	it := &activation[P]{grain: grain, waiting: waiting, stopping: new(atomic.Bool)}
	if a.all == nil {
		a.all = map[string]*activation[P]{}
	}
	a.all[grain] = it
	return it
}

// registered is called with the reply to the registration of an activation; token is 0 if the registration was refused
// or failed. If starts is true, the caller starts the grain. If not, the caller refuses the waiting processes, and
// removes the entry if there is a token.
func (a *activations[P]) registered(it *activation[P], token int64) (starts bool) {
	it.token = token
	if token == 0 || !a.open {
		delete(a.all, it.grain)
		return false
	}
	it.runs = true
	return true
}

// answered returns the processes that wait for an activation, and forgets them, since each is answered once.
func (it *activation[P]) answered() []P {
	waiting := it.waiting
	it.waiting = nil
	return waiting
}

// begins reports whether a grain may begin a message; serves is the result of term.serves.
func (it *activation[P]) begins(serves bool) bool { return serves && !it.stopping.Load() }

// stopped is called when a grain has stopped, or could not be started. held says whether the lease of the term lasts.
func (a *activations[P]) stopped(it *activation[P], held bool) {
	delete(a.all, it.grain)
	if !held {
		a.late++
	}
}

// begin begins a term.
func (a *activations[P]) begin() { a.open, a.late = true, 0 }

// close ends the term, and returns the grains that are to be stopped. The term is over when all have stopped.
func (a *activations[P]) close() (run []*activation[P]) {
	a.open = false
	for _, it := range a.all {
		if it.runs {
			run = append(run, it)
		}
	}
	return run
}
