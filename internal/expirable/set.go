package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// answerSet answers the first of the sets, whose command is over. If it has failed, the next set comes before an Acquire,
// which may need it.
func (s *Semaphore) answerSet(a machine.Answer) {
	if a.Kind == machine.NotDone {
		s.after = 0
	}
	s.effects.Answer(s.sets[0].ref, a)
	s.sets = s.sets[1:]
}

// expireSets answers the sets that have not been begun in time. A set under way ends with its command.
func (s *Semaphore) expireSets() {
	busy := 0
	if s.main.kind == Set {
		busy = 1
	}
	stay := slices.Clip(s.sets[:busy])
	for _, one := range s.sets[busy:] {
		if s.now < one.until {
			stay = append(stay, one)
			continue
		}
		s.effects.Refuse(one.ref, machine.NotDone, machine.Unavailable, "Redis has not answered in time")
	}
	s.sets = stay
}
