package pubsub

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
)

// memberPause is the pause between two checks that the server of the subscriptions is still in the cluster.
const memberPause = 5 * time.Second

// awaitLeave returns a channel that gets the server of the current connection when the server has left its cluster.
// Such a server keeps the connection, but no longer gets messages of the cluster. The goroutine ends with ctx.
func (s *Subscriptions) awaitLeave(ctx context.Context) <-chan string {
	if s.hasLeft == nil {
		return nil
	}
	leaves := make(chan string)
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
			if current == nil || !s.hasLeft(ctx, current.server) {
				continue
			}
			select {
			case leaves <- current.server:
			case <-ctx.Done():
			}
		}
	})
	return leaves
}

// hasLeft reports whether a server of a cluster has left the cluster. A server that was reset lists no slots itself. A
// server that was only forgotten is missing from the lists of the other servers, so one of these is asked. A server
// that does not answer has not left.
func hasLeft(ctx context.Context, client rueidis.Client, server string) bool {
	nodes := client.Nodes()
	if nodes[server] == nil {
		return true
	}
	inTime, cancel := context.WithTimeout(ctx, memberPause)
	defer cancel()
	if members, err := slots.Members(inTime, nodes[server], server); err == nil && len(members) == 0 {
		return true
	}
	for other, node := range nodes { // in a random order
		if other == server {
			continue
		}
		members, err := slots.Members(inTime, node, other)
		// A server that does not list itself calls servers by other names than the client does.
		return err == nil && slices.Contains(members, other) && !slices.Contains(members, server)
	}
	return false
}
