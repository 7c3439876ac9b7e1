package actors

// Redis keeps the last command of each client about a semaphore or a latch, in a record that lasts for an hour: a copy of
// the command that arrives late is not carried out again.

// commandClient is the client id under which new actors of semaphores and latches send their commands.
func (r *Runtime) commandClient() string { return *r.commands.Load() }

// renewCommandClient is for an actor that leaves while one of its commands is not confirmed. The next
// actor's commands then count as another client's, so that they do not make that command late.
func (r *Runtime) renewCommandClient() {
	client := r.sibling()
	r.commands.Store(&client)
}

// removeRecord removes the record of the last command, at the end of the System, unless a copy of a command may still
// need it: it expires then.
func (s *permitState) removeRecord() {
	if number, certain := s.pool.Sent(); number != 0 && certain {
		s.backend.Forget(number)
	}
}

// leaveRecord leaves the record to expire, so that lockkeeper ls finds what was used a while ago. The next actor must
// not remove it while a copy of a command may need it.
func (s *permitState) leaveRecord() {
	if _, certain := s.pool.Sent(); !certain {
		s.rt.renewCommandClient()
	}
}
