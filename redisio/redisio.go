// Package redisio is the only package that talks to Redis. It takes calls from actors without
// blocking them, sends them in batches, and returns the outcomes as plain values. It makes no
// decisions and never repeats a command by itself: the lock decides whether to send it again.
//
// Its goroutines are few and do not grow with the number of locks: up to 24 workers (in a cluster 32),
// as many again for calls that wait for replicas (in a cluster up to 128), and one or two for the pub/sub
// connection, or for that to each master of a cluster. A client that asks Sentinels has two for each
// of them, besides those of rueidis.
package redisio

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// Redis runs scripts and keeps subscriptions over one rueidis client.
type Redis struct {
	client   rueidis.Client
	stale    *reconnector
	pool     *pool
	renewals *renewals
	follower *follower // nil if the client asks no Sentinels, or is not of Connect or ConnectWith
}

// New returns a Redis. Goroutines come and go with the calls. linger is how long a renewal may
// wait for others to share a script with.
func New(client rueidis.Client, linger time.Duration) *Redis {
	stale := &reconnector{client: client}
	p := newPool(client, stale, client.Mode() == rueidis.ClientModeCluster)
	r := &Redis{client: client, stale: stale, pool: p, renewals: newRenewals(p, linger, p.cluster)}
	p.round = r.Round
	if c, ok := client.(*following); ok {
		r.follower, stale.follower, p.cuts = c.follower, c.follower, &c.follower.cuts
	}
	return r
}

// OnMove has a function called whenever another server has become the master, until stop is
// called. The new one may not have what the old one has confirmed last. The function must not
// block. It is called for clients of Connect and ConnectWith with Sentinels.
func (r *Redis) OnMove(moved func()) (stop func()) {
	if r.follower == nil {
		return func() {}
	}
	return r.follower.tell(moved)
}

// Shard makes the scripts use sharded pub/sub. It is called before anything else, or never.
func (r *Redis) Shard() { r.pool.sharded = true }

// Sharded reports whether Shard was called.
func (r *Redis) Sharded() bool { return r.pool.sharded }

// Cluster reports whether the client talks to a Redis Cluster, where all keys of a lock must be
// in one slot.
func (r *Redis) Cluster() bool { return r.client.Mode() == rueidis.ClientModeCluster }

// Run takes a call and returns at once. Its reply is delivered exactly once.
func (r *Redis) Run(c Call) { r.pool.submit(c) }

// RunHere runs a call on the caller's goroutine, and returns after its reply. The client gets the
// values of a context, such as a span; the context's end does not end the call.
func (r *Redis) RunHere(within context.Context, c *Call) {
	r.pool.fit(c)
	switch {
	case c.tooLate(time.Now()):
	case r.pool.along.Load() != nil:
		r.pool.runWithAlong(c)
	default:
		r.pool.runOne(within, c)
	}
}

// Renew takes the renewal of one lease and returns at once. The renewal shares a script with
// others that are due at about the same time.
func (r *Redis) Renew(n Renewal) { r.renewals.add(n) }

// Drain waits until every call has its reply, or until done.
func (r *Redis) Drain(done <-chan struct{}) { r.pool.drain(done) }

// Close sends the renewals that still wait, and waits until every call has its reply. It does
// not close the client, which belongs to the caller of New.
func (r *Redis) Close() {
	r.renewals.close()
	r.pool.close()
	r.stale.close()
}
