package redisio

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// homes are the masters of a cluster's slots, for pipelines that must not be torn apart. The client
// knows them too, and says so only by lending a connection; but when it takes one back it unsubscribes
// it, and panics at an error in reply to that (MISCONF, BUSY).
type slotMasters struct {
	client rueidis.Client
	known  atomic.Pointer[masters] // nil if that has to be found out
}

// of returns the master of a slot; if nobody knows it, any server, which redirects or refuses. It is nil
// if the client has yet to learn of that server.
func (h *slotMasters) of(ctx context.Context, slot uint16) rueidis.Client {
	nodes := h.client.Nodes()
	if known := h.known.Load(); known != nil {
		if node := nodes[known.of(slot)]; node != nil {
			return node
		}
	}
	addresses := slices.Collect(maps.Keys(nodes)) // in any order: one of them may be down
	found := locate(ctx, h.client, addresses)
	h.known.Store(&found)
	address := found.of(slot)
	if address == "" && len(addresses) > 0 {
		address = addresses[0]
	}
	return nodes[address]
}

// forget has the masters found out anew.
func (h *slotMasters) forget() { h.known.Store(nil) }

// introduce makes the client learn of the server of a key's slot. The results are those of a script and a
// WAIT that were not sent: an error that passes.
func (h *slotMasters) introduce(ctx context.Context, key string) []rueidis.RedisResult {
	refused := discover(ctx, h.client, key)
	return []rueidis.RedisResult{refused, refused}
}

// introduce makes a client learn of the server of a key's slot, which it does when it is redirected there.
// A command about a shard channel would not do: a replica of the slot's master carries it out itself. Every
// user may run scripts.
func discover(ctx context.Context, client rueidis.Client, key string) (refused rueidis.RedisResult) {
	const refuse = "return redis.error_reply('" + severalKeys + " the client did not know the server of this slot')"
	return client.Do(ctx, client.B().Eval().Script(refuse).Numkeys(1).Key(key).Build())
}
