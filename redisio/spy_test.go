package redisio

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

// spy is a client that looks at each pipeline before it is sent. It can hold
// pipelines back meanwhile.
type spy struct {
	rueidis.Client

	mu        sync.Mutex
	pipelines []int // how long they were
	gates     []gate
}

type gate struct {
	key  string
	open chan struct{}
}

// hold keeps pipelines back that have a key among theirs, until the result is called.
func (s *spy) hold(key string) (release func()) {
	g := gate{key, make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates = append(s.gates, g)
	return sync.OnceFunc(func() { close(g.open) })
}

func (s *spy) sent() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pipelines)
}

func (s *spy) look(commands ...rueidis.Completed) {
	s.mu.Lock()
	s.pipelines = append(s.pipelines, len(commands))
	gates := s.gates
	s.mu.Unlock()
	for _, g := range gates {
		if slices.ContainsFunc(commands, func(c rueidis.Completed) bool { return slices.Contains(c.Commands(), g.key) }) {
			<-g.open
		}
	}
}

func (s *spy) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	s.look(command)
	return s.Client.Do(ctx, command)
}

func (s *spy) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	s.look(commands...)
	return s.Client.DoMulti(ctx, commands...)
}
