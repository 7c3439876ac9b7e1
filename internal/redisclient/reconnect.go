package redisclient

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/pubsub"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
)

const (
	// Connections to a replica are closed at once. As long as replicas reply, that is repeated
	// with a pause that grows from replaceFirst to replaceMost.
	replaceFirst = 100 * time.Millisecond
	replaceMost  = 2 * time.Second
	// replaceForgotten is after how long without a reply of a replica the pause is reset.
	replaceForgotten = 5 * time.Second
	// replaceLast is how long after the first reply of a master the subscriptions are replaced once
	// more: they may have been replaced before the address led to the master, and get no reply that
	// shows it.
	replaceLast = 500 * time.Millisecond
	// quitTimeout bounds the wait for the end of a connection.
	quitTimeout = time.Second
	// quitsPerRound is how many connections are closed at a time. rueidis opens four by itself; with one
	// at a time, the last might stay open for a minute.
	quitsPerRound = 2
)

// reconnector closes connections to a server that has become a replica. Redis keeps them
// open, but a new connection to the same address (a DNS name, a load balancer) may lead to
// the new master.
type reconnector struct {
	client   rueidis.Client
	follower follower // or nil

	// lost reports whether the last reply was that of a replica.
	lost atomic.Bool

	mu            sync.Mutex // guards the fields below
	subscriptions []*pubsub.Subscriptions
	last          time.Time
	found         *time.Timer // replaces the subscriptions once more; nil before the first reply of a replica
	pause         time.Duration
	closed        bool
	wg            sync.WaitGroup
}

// add registers subscriptions whose connections are to be replaced, too.
func (r *reconnector) add(s *pubsub.Subscriptions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscriptions = append(r.subscriptions, s)
}

// close waits for the goroutines, and prevents further ones.
func (r *reconnector) close() {
	r.mu.Lock()
	r.closed = true
	if r.found != nil {
		r.found.Stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// observe handles the reply to a call: it reconnects if the reply is that of a replica.
func (r *reconnector) observe(c *Call, result rueidis.RedisResult) {
	err := result.Error()
	if reply, fromRedis := rueidis.IsRedisErr(err); fromRedis && len(c.Keys) > 0 && refusal.ByReplica(reply.Error()) {
		r.reconnect(c.Keys[0])
	} else if r.lost.Load() && (err == nil || fromRedis || rueidis.IsRedisNil(err)) {
		r.reached()
	}
}

// reached records a reply that is not that of a replica.
func (r *reconnector) reached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.CompareAndSwap(true, false) && !r.closed {
		r.found.Reset(replaceLast)
	}
}

func (r *reconnector) reconnect(key string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.client.Mode() == rueidis.ClientModeCluster {
		return
	}
	if r.found == nil {
		r.found = time.AfterFunc(time.Hour, r.replace)
	}
	r.found.Stop()
	r.lost.Store(true)
	if now.Before(r.last.Add(r.pause)) {
		return
	}
	if now.After(r.last.Add(replaceForgotten)) {
		r.pause = replaceFirst
	} else {
		r.pause = min(2*r.pause, replaceMost)
	}
	r.last = now
	if r.follower != nil {
		r.follower.RecordDemotion()
	}
	r.wg.Go(func() { r.quit(key) })
	for _, s := range r.subscriptions {
		s.Replace()
	}
}

// replace makes the subscriptions replace their connections.
func (r *reconnector) replace() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subscriptions {
		if !r.closed {
			s.Replace()
		}
	}
}

// quit closes quitsPerRound connections of the client; further ones are closed when they are used. rueidis
// chooses a connection at random for a command with a key, so the pipeline begins with one. Redis closes a
// connection at QUIT, which needs no permission. Because of the PING, rueidis notices that before the next
// call fails.
func (r *reconnector) quit(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), quitTimeout)
	defer cancel()
	b := r.client.B()
	for range quitsPerRound {
		r.client.DoMulti(ctx, b.Pttl().Key(key).Build(), b.Quit().Build(), b.Ping().Build())
	}
}
