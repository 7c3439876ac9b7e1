package pubsub

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// memberPause is how often the server of the subscriptions is asked whether it is still in the cluster.
const memberPause = 5 * time.Second

// awaitLeave returns a channel that is closed when the server of the current connection has left its cluster: it keeps
// the connection, but gets no message of the cluster any more. The goroutine ends with ctx.
func (s *Subscriptions) awaitLeave(ctx context.Context) <-chan struct{} {
	if s.left == nil {
		return nil
	}
	alone := make(chan struct{})
	s.others.Go(func() {
		for {
			select {
			case <-time.After(memberPause):
			case <-ctx.Done():
				return
			}
			s.mu.Lock()
			current := s.current
			s.mu.Unlock()
			if current != nil && s.left(ctx, current.server) {
				close(alone)
				return
			}
		}
	})
	return alone
}

// left reports whether a server of a cluster has left it. One that is a member knows who has which slots; one that has
// left knows nothing, or its client knows it no longer. A server that does not answer has not left.
func left(ctx context.Context, client rueidis.Client, server string) bool {
	node := client.Nodes()[server]
	if node == nil {
		return true
	}
	inTime, cancel := context.WithTimeout(ctx, memberPause)
	defer cancel()
	slots, err := node.Do(inTime, node.B().ClusterSlots().Build()).ToArray()
	return err == nil && len(slots) == 0
}
