// Package redisclient runs the scripts of locks and keeps their subscriptions. It takes calls from actors without
// blocking them, sends them in batches, and returns the replies as plain values. It makes no decisions
// about locks and never repeats a script: the lock decides whether to send it again.
//
// The number of goroutines does not grow with the number of locks. There are up to 24 workers (32 in a cluster), as
// many for calls that wait for replicas (up to 128 in a cluster), and 1 goroutine for the pub/sub connection (2 in a
// cluster; with sharded pub/sub 1, and 1 for each master). The client has its own goroutines, with Sentinel 4 for each
// Sentinel.
package redisclient

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/pubsub"
)

// follower is implemented by the clients of Sentinels that package redisio opens.
type follower interface {
	// OnMove registers a function to be called when the master changes; stop unregisters it.
	OnMove(moved func()) (stop func())
	// Disconnects counts the times that all connections to the master were closed.
	Disconnects() *atomic.Uint64
	// RecordDemotion records that the master has replied that it is a replica.
	RecordDemotion()
}

// Redis runs scripts and keeps subscriptions over one rueidis client.
type Redis struct {
	client      rueidis.Client
	reconnector *reconnector
	pool        *pool
	renewals    *renewals
	follower    follower // nil unless the client follows Sentinels
	errands     atomic.Int64
}

// New returns a Redis. Goroutines are started on demand. batchDelay is the time that a renewal may wait for other
// renewals, to share a script with them.
func New(client rueidis.Client, batchDelay time.Duration) *Redis {
	reconnect := &reconnector{client: client}
	p := newPool(client, reconnect, client.Mode() == rueidis.ClientModeCluster)
	r := &Redis{client: client, reconnector: reconnect, pool: p, renewals: newRenewals(p, batchDelay, p.cluster)}
	p.inRound = r.InRound
	if f, ok := client.(follower); ok {
		r.follower, reconnect.follower, p.disconnects = f, f, f.Disconnects()
	}
	return r
}

// OnMove registers a function to be called when the master changes; stop unregisters it. The new master may not have
// the latest writes that the old master has confirmed. The function must not block. It is only called for clients of
// Sentinels that package redisio has opened.
func (r *Redis) OnMove(moved func()) (stop func()) {
	if r.follower == nil {
		return func() {}
	}
	return r.follower.OnMove(moved)
}

// Shard makes the scripts use sharded pub/sub. It must be called before all other methods.
func (r *Redis) Shard() { r.pool.sharded = true }

// Sharded reports whether Shard was called.
func (r *Redis) Sharded() bool { return r.pool.sharded }

// Cluster reports whether the client is connected to a Redis Cluster, where all keys of a lock must be in
// one slot.
func (r *Redis) Cluster() bool { return r.client.Mode() == rueidis.ClientModeCluster }

// Run takes a call and returns at once. Its reply is delivered exactly once.
func (r *Redis) Run(c Call) { r.pool.submit(c) }

// RunHere runs a call on the caller's goroutine, and returns after its reply. The client receives the
// values of a context, such as a span; the end of the context does not end the call.
func (r *Redis) RunHere(within context.Context, c *Call) {
	r.pool.chooseScript(c)
	switch {
	case c.tooLate(time.Now()):
	case r.pool.waiting.Load() != nil:
		r.pool.runWithWaiting(c)
	default:
		r.pool.runOne(within, c)
	}
}

// Renew takes the renewal of one lease and returns at once. Renewals that are due at about the same time
// share a script.
func (r *Redis) Renew(n Renewal) { r.renewals.add(n) }

// NewSubscriptions returns Subscriptions over the client; see pubsub.NewSubscriptions.
func (r *Redis) NewSubscriptions(listener pubsub.Listener, first string) *pubsub.Subscriptions {
	s := pubsub.NewSubscriptions(r.client, listener, first, r.pool.watch.reportReconnect)
	r.reconnector.add(s)
	return s
}

// NewShards returns Shards over the client; see pubsub.NewShards.
func (r *Redis) NewShards(listener pubsub.Listener) *pubsub.Shards {
	return pubsub.NewShards(r.client, listener, r.pool.watch.reportReconnect)
}

// AwaitReplies waits until every call has its reply, or until done.
func (r *Redis) AwaitReplies(done <-chan struct{}) { r.pool.awaitReplies(done) }

// Close sends the pending renewals, and waits until every call has its reply. It does not close the
// client.
func (r *Redis) Close() {
	r.renewals.close()
	r.pool.close()
	r.reconnector.close()
}
