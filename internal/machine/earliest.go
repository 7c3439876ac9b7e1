package machine

// Earliest is the earliest of some times; 0 if there is none.
type Earliest Instant

// Add adds a time; 0 is never.
func (e *Earliest) Add(at Instant) {
	if at > 0 && (*e == 0 || at < Instant(*e)) {
		*e = Earliest(at)
	}
}

// Reached reports whether that time has come.
func (e Earliest) Reached(now Instant) bool { return e != 0 && now >= Instant(e) }

// Get returns the earliest time, if there is one.
func (e Earliest) Get() (at Instant, ok bool) { return Instant(e), e != 0 }
