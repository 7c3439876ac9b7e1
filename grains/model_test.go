package grains

// model is what Redis has of two grains, and what the scripts do to it. Members are numbered, in all terms. TestWorlds compares
// it with a server, and the exploration runs on it.
type model struct {
	entries [2]modelEntry
	counter int8
	leases  []bool // by member
}

// modelEntry is an entry; the zero value is none.
type modelEntry struct{ member, token int8 }

// modelReply is the reply to a registration.
type modelReply int8

const (
	mine modelReply = iota + 1
	changed
	held
	lost
)

// register does what grains_register.lua does.
func (r *model) register(grain int, member int8, expected modelEntry) (modelReply, int8) {
	switch entry := r.entries[grain]; {
	case entry != expected:
		return changed, 0
	case expected.token != 0 && expected.member != member && r.leases[expected.member]:
		return held, 0
	case !r.leases[member]:
		return lost, 0
	}
	r.counter++
	r.entries[grain] = modelEntry{member, r.counter}
	return mine, r.counter
}

// unregister does what grains_unregister.lua does, of a member that stops a grain.
func (r *model) unregister(grain int, gone modelEntry) {
	if r.entries[grain] == gone {
		r.entries[grain] = modelEntry{}
	}
}

// bury does what a burial does.
func (r *model) bury() {
	for grain, entry := range r.entries {
		if !r.leases[entry.member] {
			r.unregister(grain, entry)
		}
	}
}
