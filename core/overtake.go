package core

// Nothing that Redis refuses holds up what frees. A user that may not write, a reply that
// is lost again and again, a full memory: each may concern a count, and not the release.

// refs are several requests that one answer ends.
type refs []any

// overtake makes way for releases while the change under way waits for another try: a
// hold that is given back altogether ends at once, and a release is tried before what
// asks for more. False if there is nothing to make way for.
func (l *Lock) overtake() bool {
	if l.main.kind != opCount || l.main.tries == 0 || l.main.inFlight {
		return false
	}
	holds := l.holds
	for own := range holds.all() {
		if l.givenBack(own) {
			l.stepAside()
			l.endHold(own, l.takeReleases(own))
			return true
		}
	}
	for _, c := range l.changes {
		if c.ticket == nil && l.main.ref == nil {
			l.stepAside()
			return l.nextChange()
		}
	}
	return false
}

// givenBack reports whether releases of all that is held as that hold are waiting. Its
// re-entries that are waiting have not been granted, and do not count.
func (l *Lock) givenBack(own hold) bool {
	rest := own.counts
	if o := l.main; o.hold == own.id && o.ref != nil {
		rest = rest.plus(o.mode, -1)
	}
	for _, c := range l.changes {
		if c.ticket == nil && c.hold == own.id && rest.in(c.mode) > 0 {
			rest = rest.plus(c.mode, -1)
		}
	}
	return rest.total() == 0
}

// stepAside puts the change under way back among those that wait: a release first, and
// what asks for more last. Whether it was carried out may not be known.
func (l *Lock) stepAside() {
	switch o := l.main; {
	case o.joins():
		l.queue.insert(o.ticket) // it has had no share yet
	case o.ticket != nil:
		l.changes = append(l.changes, change{hold: o.hold, mode: o.mode, ticket: o.ticket})
	case o.ref != nil:
		l.changes = append([]change{{hold: o.hold, mode: o.mode, ref: o.ref, until: o.until}}, l.changes...)
	}
	l.dropCount()
}

// takeReleases takes out the waiting releases that end a hold, and gives their requests.
func (l *Lock) takeReleases(own hold) any {
	rest := own.counts
	var stay []change
	var all refs
	for _, c := range l.changes {
		switch {
		case c.ticket != nil || c.hold != own.id || rest.in(c.mode) == 0:
			stay = append(stay, c)
			continue
		case c.ref != nil: // else its owner is dead
			all = append(all, c.ref)
		}
		rest = rest.plus(c.mode, -1)
	}
	l.changes = stay
	return all
}

// giveBack counts one hold less, though the count in Redis could not be set: that is set
// right as soon as Redis allows it, or with the release of the last.
func (l *Lock) giveBack(o op) {
	own := l.holds.byID(o.hold)
	if !own.dead { // else its counts are those of its last release already
		own.counts = own.plus(o.mode, -1)
		l.holds.update(own)
	}
}
