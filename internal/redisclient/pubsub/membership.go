package pubsub

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// memberPause is how often it is checked whether the server of the subscriptions is still in the cluster.
const memberPause = 5 * time.Second

// awaitLeave returns a channel that gets the server of the current connection when that has left its cluster: it keeps
// the connection, but gets no message of the cluster any more. The goroutine ends with ctx.
func (s *Subscriptions) awaitLeave(ctx context.Context) <-chan string {
	if s.left == nil {
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
			if current == nil || !s.left(ctx, current.server) {
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

// left reports whether a server of a cluster has left it. One that was reset lists no slots, and one that was only
// forgotten is listed by no other: one of them is asked. A server that does not answer has not left.
func left(ctx context.Context, client rueidis.Client, server string) bool {
	nodes := client.Nodes()
	if nodes[server] == nil {
		return true
	}
	inTime, cancel := context.WithTimeout(ctx, memberPause)
	defer cancel()
	if members, err := membersBy(inTime, nodes[server]); err == nil && len(members) == 0 {
		return true
	}
	for other, node := range nodes { // in a random order
		if other == server {
			continue
		}
		members, err := membersBy(inTime, node)
		// One that does not list itself calls servers by other names than the client does.
		return err == nil && slices.Contains(members, other) && !slices.Contains(members, server)
	}
	return false
}

// membersBy returns the servers with slots, and their replicas, that a server knows.
func membersBy(ctx context.Context, node rueidis.Client) (members []string, err error) {
	ranges, err := node.Do(ctx, node.B().ClusterSlots().Build()).ToArray()
	for _, each := range ranges {
		fields, _ := each.ToArray() // the first slot, the last one, and then the servers
		for _, field := range fields[min(2, len(fields)):] {
			server, _ := field.ToArray()
			if len(server) < 2 {
				continue
			}
			host, _ := server[0].ToString()
			port, _ := server[1].AsInt64()
			members = append(members, net.JoinHostPort(host, strconv.FormatInt(port, 10)))
		}
	}
	return members, err
}
