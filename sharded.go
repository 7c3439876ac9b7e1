package lockkeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// ShardedPubSub says when the locks in a Redis Cluster use sharded pub/sub (SSUBSCRIBE and SPUBLISH
// instead of SUBSCRIBE and PUBLISH). Clients that differ in this do not hear each other: one that
// waits gets the lock when it tries again, and Redisson when the holder's TTL is over. The modes are
// those of Redisson's shardedSubscriptionMode. On a server that is no cluster they have no effect.
type ShardedPubSub uint8

// The modes.
const (
	// ShardedAuto: if a server of the cluster has it, as those of Redis 7 and Valkey do.
	ShardedAuto ShardedPubSub = iota
	// ShardedOn: always. The servers must have it.
	ShardedOn
	// ShardedOff: never. Redisson before 3.22 has nothing else.
	ShardedOff
)

// shards reports whether the client's server is a cluster whose locks use sharded pub/sub.
func (c Config) shards(client rueidis.Client) (bool, error) {
	if client.Mode() != rueidis.ClientModeCluster || c.ShardedPubSub != ShardedAuto {
		return client.Mode() == rueidis.ClientModeCluster && c.ShardedPubSub == ShardedOn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.CallTimeout)
	defer cancel()
	has, err := redisio.HasShards(ctx, client)
	if err == nil {
		return has, nil
	}
	kind := ErrRejected
	if refusal := (*redisio.Error)(nil); errors.As(err, &refusal) && refusal.Transient {
		kind = ErrUnavailable
	}
	return false, fmt.Errorf("lockkeeper: new: %w: has the cluster sharded pub/sub? (Config.ShardedPubSub may say so): %w", kind, err)
}
