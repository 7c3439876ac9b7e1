package backend

import "sync"

// collect collects one answer from each of n parts. After each answer, judge returns what to do, if anything, and
// whether the collection is over. The action runs after the mutex is released, since it may run the lock actor.
type collect[T any] struct {
	mu      sync.Mutex
	answers []T
	n       int
	over    bool
	judge   func(answers []T, last bool) (act func(), over bool)
}

// add adds an answer, and reports whether it is late because the collection is over.
func (c *collect[T]) add(answer T) (late bool) {
	act, late := c.judgeAnswer(answer)
	if act != nil {
		act()
	}
	return late
}

func (c *collect[T]) judgeAnswer(answer T) (act func(), late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, true
	}
	c.answers = append(c.answers, answer)
	act, c.over = c.judge(c.answers, len(c.answers) == c.n)
	return act, false
}

// cut ends the collection without the missing answers, unless it is over.
func (c *collect[T]) cut(judge func(answers []T) (act func())) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over = true
	act := judge(c.answers)
	c.mu.Unlock()
	act()
}

// whenAll returns a judge that waits for all answers.
func whenAll[T any](act func(answers []T)) func([]T, bool) (func(), bool) {
	return func(answers []T, last bool) (func(), bool) {
		if !last {
			return nil, false
		}
		return func() { act(answers) }, true
	}
}
