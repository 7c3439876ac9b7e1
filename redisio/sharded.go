package redisio

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// HasShards reports whether a client's server has sharded pub/sub: whether it is a cluster of Redis 7
// or later, or of Valkey. It asks as Redisson does, since both must do the same: the first server that
// answers does so for all. The error is an *Error.
func HasShards(ctx context.Context, client rueidis.Client) (bool, error) {
	if client.Mode() != rueidis.ClientModeCluster {
		return false, nil
	}
	last := &Error{Transient: true, err: errors.New("no server of the cluster is known")}
	for _, node := range client.Nodes() {
		err := node.Do(ctx, node.B().Arbitrary("PUBSUB", "SHARDNUMSUB", "0").Build()).Error()
		if err == nil {
			return true, nil
		}
		if last = Sort(err); !last.Transient && last.Hint == "" {
			return false, nil // it does not know the subcommand
		}
	}
	return false, last
}
