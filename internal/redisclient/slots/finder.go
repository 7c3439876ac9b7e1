package slots

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
)

// Finder finds the masters of a cluster's slots, for pipelines that must go to one server. rueidis knows them too, but
// gives a master only as a dedicated connection. At the release of such a connection it unsubscribes, and panics if the
// reply is an error (MISCONF, BUSY).
type Finder struct {
	Client rueidis.Client
	known  atomic.Pointer[Map] // nil if Of must ask the servers
}

// Of returns the master of a slot. If the master is not known, Of returns any server, which redirects or refuses. It
// returns nil if the client does not know the server yet.
func (f *Finder) Of(ctx context.Context, slot uint16) rueidis.Client {
	nodes := f.Client.Nodes()
	if known := f.known.Load(); known != nil {
		if node := nodes[known.Of(slot)]; node != nil {
			return node
		}
	}
	addresses := slices.Collect(maps.Keys(nodes)) // in random order: a server may be down
	found := Locate(ctx, f.Client, addresses)
	f.known.Store(&found)
	address := found.Of(slot)
	if address == "" && len(addresses) > 0 {
		address = addresses[0]
	}
	return nodes[address]
}

// Forget makes the next Of ask the servers again.
func (f *Finder) Forget() { f.known.Store(nil) }

// Discover makes the client discover the server of a key's slot. It returns a transient error as the
// result of a script, and of a WAIT, that were not sent.
func (f *Finder) Discover(ctx context.Context, key string) []rueidis.RedisResult {
	refused := Discover(ctx, f.Client, key)
	return []rueidis.RedisResult{refused, refused}
}

// Discover makes a client discover the server of a key's slot, by a command that is redirected there. The command is a
// script, which every user may run; a replica of the slot's master would not redirect a command about a shard channel.
func Discover(ctx context.Context, client rueidis.Client, key string) (refused rueidis.RedisResult) {
	const refuse = "return redis.error_reply('" + refusal.SeveralKeys + " the client did not know the server of this slot')"
	return client.Do(ctx, client.B().Eval().Script(refuse).Numkeys(1).Key(key).Build())
}
