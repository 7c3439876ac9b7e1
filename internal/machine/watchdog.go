package machine

// AtRisk says that the last renewal has failed, and that the holders were warned.
type AtRisk bool

// Failed notes that a renewal has failed, and reports whether the holders are to be warned: they are warned once until
// a renewal succeeds. It returns the error that explains a loss: the new one, or lastErr if the new one says only that
// no reply came. The last tries before the end of a lease have so little time that they fail like this.
func (a *AtRisk) Failed(f *Failure, lastErr string) (err string, warn bool) {
	if warn = !bool(*a); warn || !f.IsNoReply() {
		lastErr = f.Err.Error()
	}
	*a = true
	return lastErr, warn
}
