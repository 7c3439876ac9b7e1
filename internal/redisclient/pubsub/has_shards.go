package pubsub

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/hello"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

var errMissing = &redisio.Error{Err: errors.New("the context or the client is nil")}

// askNextAfter is the time that one server may take to answer before another server is asked, too.
const askNextAfter = 100 * time.Millisecond

// HasShards reports whether a client's server supports sharded pub/sub: whether it is a cluster of Redis 7 or later, or
// of Valkey. It decides as Redisson does, by the first server that answers, since Redisson and Lockkeeper must come to
// the same result. It fails if no server answers before ctx ends; requests to servers that do not answer end with ctx,
// in the background. The error is a *redisio.Error.
func HasShards(ctx context.Context, client rueidis.Client) (bool, error) {
	if ctx == nil || client == nil {
		return false, errMissing
	}
	if client.Mode() != rueidis.ClientModeCluster {
		return false, nil
	}
	type answer struct {
		has bool
		err *redisio.Error
	}
	nodes, waiting := client.Nodes(), 0
	answers := make(chan answer, len(nodes))
	last := &redisio.Error{Transient: true, Err: errors.New("no server of the cluster is known")}
	for len(nodes) > 0 || waiting > 0 {
		var later <-chan time.Time
		for address, node := range nodes {
			delete(nodes, address)
			waiting, later = waiting+1, time.After(askNextAfter)
			go func() {
				has, err := hasShards(ctx, node)
				answers <- answer{has, err}
			}()
			break
		}
		select {
		case a := <-answers:
			if a.err == nil {
				return a.has, nil
			}
			waiting, last = waiting-1, a.err
		case <-later:
		}
	}
	return false, last
}

// hasShards asks one server.
func hasShards(ctx context.Context, node rueidis.Client) (bool, *redisio.Error) {
	err := redisio.Classify(node.Do(ctx, node.B().Arbitrary("PUBSUB", "SHARDNUMSUB", "0").Build()).Error())
	switch {
	case err == nil:
		return true, nil
	case err.Transient:
		return false, err
	case err.Hint == "": // the server does not know the subcommand
		return false, nil
	}
	// Redis 6.2 checks the user's rights first, which may lack the rights for later versions.
	major, _, _ := strings.Cut(hello.Field(ctx, node, "version"), ".")
	if n, unknown := strconv.Atoi(major); unknown == nil && n < 7 {
		return false, nil
	}
	return false, err
}
