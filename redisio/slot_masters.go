package redisio

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// slotMasters finds the masters of a cluster's slots, for pipelines that must go to one server. rueidis
// knows them too, but gives them only as a dedicated connection; at the release of that it unsubscribes,
// and panics if the reply is an error (MISCONF, BUSY).
type slotMasters struct {
	client rueidis.Client
	known  atomic.Pointer[masters] // nil if of must ask the servers
}

// of returns the master of a slot. If it is not known, it returns any server, which redirects or refuses.
// It returns nil if the client does not know the server yet.
func (h *slotMasters) of(ctx context.Context, slot uint16) rueidis.Client {
	nodes := h.client.Nodes()
	if known := h.known.Load(); known != nil {
		if node := nodes[known.of(slot)]; node != nil {
			return node
		}
	}
	addresses := slices.Collect(maps.Keys(nodes)) // in random order: one of them may be down
	found := locate(ctx, h.client, addresses)
	h.known.Store(&found)
	address := found.of(slot)
	if address == "" && len(addresses) > 0 {
		address = addresses[0]
	}
	return nodes[address]
}

// forget makes the next of ask the servers again.
func (h *slotMasters) forget() { h.known.Store(nil) }

// discover makes the client discover the server of a key's slot. It returns a transient error as the
// result of a script, and of a WAIT, that were not sent.
func (h *slotMasters) discover(ctx context.Context, key string) []rueidis.RedisResult {
	refused := discover(ctx, h.client, key)
	return []rueidis.RedisResult{refused, refused}
}

// discover makes a client discover the server of a key's slot, by a command that is redirected there. It is
// a script, which every user may run; a command about a shard channel would not be redirected by a replica
// of the slot's master.
func discover(ctx context.Context, client rueidis.Client, key string) (refused rueidis.RedisResult) {
	const refuse = "return redis.error_reply('" + severalKeys + " the client did not know the server of this slot')"
	return client.Do(ctx, client.B().Eval().Script(refuse).Numkeys(1).Key(key).Build())
}
