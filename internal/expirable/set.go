package expirable

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// set is a request to set how many permits there are, which is answered by until.
type set struct {
	how   How
	count int
	ref   any
	until Instant
}

// answerSet answers the first of the sets, whose command is over.
func (p *Semaphore) answerSet(a machine.Answer) {
	p.answer(p.sets[0].ref, a)
	p.sets = p.sets[1:]
}

// expireSets answers those that have not been begun in time. That under way ends with its command.
func (p *Semaphore) expireSets() {
	busy := 0
	if p.main.kind == Set {
		busy = 1
	}
	stay := slices.Clip(p.sets[:busy])
	for _, s := range p.sets[busy:] {
		if p.now < s.until {
			stay = append(stay, s)
			continue
		}
		p.answer(s.ref, machine.Answer{Kind: machine.NotDone, Reason: machine.Unavailable, Detail: "Redis has not answered in time"})
	}
	p.sets = stay
}
