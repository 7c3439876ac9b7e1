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
	// Connections to a replica are closed at once. As long as replicas reply, connections are closed again with a pause
	// that grows from minReplacePause to maxReplacePause.
	minReplacePause = 100 * time.Millisecond
	maxReplacePause = 2 * time.Second
	// resetReplacePause is the time without a reply of a replica after which the pause is reset.
	resetReplacePause = 5 * time.Second
	// lastReplaceDelay is the time between the first reply of a master and a last replacement of the subscriptions,
	// since they may have been replaced before the address led to the master, and no reply would show that.
	lastReplaceDelay = 500 * time.Millisecond
	// quitTimeout bounds the wait for the end of a connection.
	quitTimeout = time.Second
	// quitsPerRound is the number of connections that are closed at a time. rueidis itself opens four connections; with
	// one at a time, the last might stay open for a minute.
	quitsPerRound = 2
)

// reconnector closes connections to a server that has become a replica. Redis keeps them
// open, but a new connection to the same address (a DNS name, a load balancer) may lead to
// the new master.
type reconnector struct {
	client   rueidis.Client
	follower follower // or nil

	// lost reports whether the last reply came from a replica.
	lost atomic.Bool

	mu            sync.Mutex // guards the fields below
	subscriptions []*pubsub.Subscriptions
	lastReconnect time.Time
	replaceTimer  *time.Timer // replaces the subscriptions once more; nil before the first reply of a replica
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
	if r.replaceTimer != nil {
		r.replaceTimer.Stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// observe handles the reply to a call: it reconnects if the reply comes from a replica.
func (r *reconnector) observe(c *Call, result rueidis.RedisResult) {
	err := result.Error()
	if reply, fromRedis := rueidis.IsRedisErr(err); fromRedis && len(c.Keys) > 0 && refusal.ByReplica(reply.Error()) {
		r.reconnect(c.Keys[0])
	} else if r.lost.Load() && (err == nil || fromRedis || rueidis.IsRedisNil(err)) {
		r.noteReached()
	}
}

// noteReached records a reply that does not come from a replica.
func (r *reconnector) noteReached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.CompareAndSwap(true, false) && !r.closed {
		r.replaceTimer.Reset(lastReplaceDelay)
	}
}

func (r *reconnector) reconnect(key string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.client.Mode() == rueidis.ClientModeCluster {
		return
	}
	if r.replaceTimer == nil {
		r.replaceTimer = time.AfterFunc(time.Hour, r.replace)
	}
	r.replaceTimer.Stop()
	r.lost.Store(true)
	if now.Before(r.lastReconnect.Add(r.pause)) {
		return
	}
	if now.After(r.lastReconnect.Add(resetReplacePause)) {
		r.pause = minReplacePause
	} else {
		r.pause = min(2*r.pause, maxReplacePause)
	}
	r.lastReconnect = now
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

// quit closes quitsPerRound connections of the client; further connections are closed when they are used. rueidis
// chooses a connection at random for a command with a key, so the pipeline begins with such a command. Redis closes a
// connection at QUIT, which needs no permission. Because of the PING, rueidis notices the closed connection before the
// next call fails.
func (r *reconnector) quit(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), quitTimeout)
	defer cancel()
	b := r.client.B()
	for range quitsPerRound {
		r.client.DoMulti(ctx, b.Pttl().Key(key).Build(), b.Quit().Build(), b.Ping().Build())
	}
}
