package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/pubsub"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// ShardedPubSub selects when locks in a Redis Cluster use sharded pub/sub (SSUBSCRIBE and SPUBLISH
// instead of SUBSCRIBE and PUBLISH). Clients with different modes do not receive each other's messages:
// a waiter gets the lock only when it tries again, and Redisson when the holder's TTL has ended. The
// modes are those of Redisson's shardedSubscriptionMode. They have no effect outside a cluster.
type ShardedPubSub uint8

// The modes.
const (
	// ShardedAuto: if a server of the cluster supports it, as Redis 7 and Valkey do.
	ShardedAuto ShardedPubSub = iota
	// ShardedOn: always. The servers must support it.
	ShardedOn
	// ShardedOff: never, as Redisson before 3.22.
	ShardedOff
)

// shards reports whether the client's server is a cluster whose locks use sharded pub/sub.
func (c Config) shards(client rueidis.Client) (bool, error) {
	if client.Mode() != rueidis.ClientModeCluster || c.ShardedPubSub != ShardedAuto {
		return client.Mode() == rueidis.ClientModeCluster && c.ShardedPubSub == ShardedOn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.CallTimeout)
	defer cancel()
	has, err := pubsub.HasShards(ctx, client)
	if err == nil {
		return has, nil
	}
	kind := ErrRejected
	if refusal := (*redisio.Error)(nil); errors.As(err, &refusal) && refusal.Transient {
		kind = ErrUnavailable
	}
	return false, fmt.Errorf("lockkeeper: new: %w: cannot find out whether the cluster has sharded pub/sub; Config.ShardedPubSub can set it: %w", kind, err)
}
