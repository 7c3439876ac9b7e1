package machine

// Contest is what a machine knows of its tries to get what its waiters want.
type Contest struct {
	// NextAt is the time of the next try, unless a message comes before.
	NextAt Instant
	// Refused says that a try was refused, so messages are of interest.
	Refused bool
	// RefusalIsStale says that a message came while a try was under way, so the refusal of that try may be outdated.
	RefusalIsStale bool
	// Tries counts the tries that have failed since the last one that did not.
	Tries int
	// LastErr is the error of the last try; "" if it did not fail.
	LastErr string
}

// Failed notes why a try has failed, and when the next is due.
func (c *Contest) Failed(err string, nextAt Instant) {
	c.LastErr, c.NextAt = err, nextAt
	c.Tries++
}

// CarriedOut notes that Redis has carried out a try, which it may have refused.
func (c *Contest) CarriedOut() { c.Tries, c.LastErr = 0, "" }
