package redisio

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// Connections to a server that is a replica are given up at once, and after that not
	// more often than every so often: from the first to the second while it lasts.
	replaceFirst = 100 * time.Millisecond
	replaceMost  = 2 * time.Second
	// replaceForgotten is after how long without such an answer it begins anew.
	replaceForgotten = 5 * time.Second
	// replaceLast is how long after the first other answer the calls have found the master. A
	// subscription gets no such answer: it may have been replaced before the address led there.
	replaceLast = 500 * time.Millisecond
	// quitTimeout bounds the wait for the end of a connection.
	quitTimeout = time.Second
	// quitsEach is how many are given up at a time: of the four that rueidis opens by itself, one
	// might else be the last for a minute.
	quitsEach = 2
)

// reconnector gives up connections to a server that has become a replica. Behind one
// address (a DNS name, a load balancer) a new connection may lead to the new master, and
// the present one never will: Redis keeps it open.
type reconnector struct {
	client   rueidis.Client
	follower *follower // or nil

	// lost: no call has had another answer since a replica gave one.
	lost atomic.Bool

	mu            sync.Mutex // guards what follows
	subscriptions []*Subscriptions
	last          time.Time
	found         *time.Timer // replaces the subscriptions once more; nil if no call had such an answer
	pause         time.Duration
	closed        bool
	wg            sync.WaitGroup
}

// add has subscriptions take part.
func (r *reconnector) add(s *Subscriptions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscriptions = append(r.subscriptions, s)
}

// close waits for what is under way; nothing is begun any more.
func (r *reconnector) close() {
	r.mu.Lock()
	r.closed = true
	if r.found != nil {
		r.found.Stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// look takes note of the reply to a call.
func (r *reconnector) look(c *Call, result rueidis.RedisResult) {
	err := result.Error()
	if refusal, fromRedis := rueidis.IsRedisErr(err); fromRedis && len(c.Keys) > 0 && byReplica(refusal.Error()) {
		r.reconnect(c.Keys[0])
	} else if r.lost.Load() && (err == nil || fromRedis || rueidis.IsRedisNil(err)) {
		r.reached()
	}
}

// reached takes note that a call has had another answer.
func (r *reconnector) reached() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost.CompareAndSwap(true, false) && !r.closed {
		r.found.Reset(replaceLast)
	}
}

// byReplica reports whether only a replica gives that error. In a cluster it says MOVED.
func byReplica(text string) bool {
	return strings.HasPrefix(text, "READONLY") || strings.HasPrefix(text, "MASTERDOWN") ||
		strings.Contains(text, ": -READONLY") // Redis before 7, of an error inside a script
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
		r.follower.doubt()
	}
	r.wg.Go(func() { r.quit(key) })
	for _, s := range r.subscriptions {
		s.replace()
	}
}

// replace has the subscriptions look for the master.
func (r *reconnector) replace() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subscriptions {
		if !r.closed {
			s.replace()
		}
	}
}

// quit ends quitsEach connections of the client's. If it has more, the others will answer the
// same in their turn; rueidis chooses one at random for a command with a key, which is why
// one comes first. Redis closes a connection at QUIT, which needs no permission. The PING
// behind it makes rueidis see that before a call of ours has to.
func (r *reconnector) quit(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), quitTimeout)
	defer cancel()
	b := r.client.B()
	for range quitsEach {
		r.client.DoMulti(ctx, b.Pttl().Key(key).Build(), b.Quit().Build(), b.Ping().Build())
	}
}
