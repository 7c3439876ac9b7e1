package kinds

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Redis keeps the last command of each client about a synchronizer, in a record that lasts for recordTime, so that a
// copy of the command that arrives late is not carried out again.

// recordTime is the time for which Redis keeps the record of a command; see scripts/common/once.lua.
const recordTime = machine.Instant(time.Hour)

// commandClient is the client id under which new actors of semaphores and latches send their commands.
func (s *Kinds) commandClient() string { return *s.commands.Load() }

// renewCommandClient is for an actor that leaves while one of its commands is not confirmed. The next actor's
// commands then count as another client's; otherwise Redis would refuse the unconfirmed command as outdated.
func (s *Kinds) renewCommandClient() {
	client := s.NewClientID()
	s.commands.Store(&client)
}

// keepPermitRecords is for an actor that leaves while one of its commands may still arrive: no record of an expirable
// semaphore is removed for as long as Redis would keep one.
func (s *Kinds) keepPermitRecords() { s.permitRecordsUntil.Store(int64(s.Now() + recordTime)) }

func (s *Kinds) keepsPermitRecords() bool {
	return s.Now() < machine.Instant(s.permitRecordsUntil.Load())
}
