// Package redisio is the only package that speaks to Redis. It takes calls from
// actors without ever blocking them, sends them in batches, and hands back what
// happened as plain values; it does not decide anything, and it never repeats a
// command on its own: whether to send again is for the lock to say.
//
// Its goroutines are few and do not grow with the number of locks: up to 24
// workers, and one for the pub/sub connection.
package redisio

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// deadConnection is how long a ping may take before its connection is given up.
// Connections are pinged when nothing has come for a second. All renewals of a key go
// over the same connection: one that died silently must not cost the lease.
const deadConnection = 2 * time.Second

// Connect opens a client for a Redis URL,
// redis[s]://[user[:password]@]host[:port][/database][?option=value…]; the
// options are those of rueidis.ParseURL (client_name, dial_timeout, addr,
// master_set for Sentinel, …). It sets what suits Lockkeeper best: no retries
// below the lock, and no client-side cache. The caller closes the client.
//
// The error never contains the URL, since that may contain a password.
func Connect(redisURL string) (rueidis.Client, error) {
	options, err := parse(redisURL)
	if err != nil {
		return nil, err
	}
	options.DisableRetry = true
	options.DisableCache = true
	options.BlockingPoolCleanup = time.Minute
	options.PipelineMultiplex = -1 // one connection: what is sent about a key arrives in that order
	if options.ConnWriteTimeout == 0 {
		options.ConnWriteTimeout = deadConnection
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to Redis at %v: %w", options.InitAddress, Sort(err))
	}
	return client, nil
}

func parse(redisURL string) (options rueidis.ClientOption, err error) {
	u, err := url.Parse(redisURL)
	if err == nil {
		options, err = rueidis.ParseURL(redisURL)
	}
	// A password whose special characters were not encoded is taken for a port, a
	// path, even a host: with an @ in the URL, nothing of it may be quoted. Nor if it
	// is encoded, which too much of the URL may be.
	at, encoded := strings.Contains(redisURL, "@"), strings.Contains(redisURL, "%40")
	if (at || encoded) && err != nil || at && strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") ||
		encoded && strings.Contains(strings.Join(options.InitAddress, ","), "@") {
		err = errors.New("what is wrong is not shown, for the sake of the password")
	}
	if err == nil {
		return options, nil
	}
	var whole *url.Error
	if errors.As(err, &whole) {
		err = whole.Err // without the URL
	}
	return options, fmt.Errorf("redis URL cannot be used: %w (expected redis[s]://[user[:password]@]host[:port]"+
		"[/database number][?option=value], with special characters percent-encoded)", err)
}

// Redis runs scripts and keeps subscriptions over one rueidis client.
type Redis struct {
	client   rueidis.Client
	pool     *pool
	renewals *renewals
}

// New starts nothing yet: goroutines come and go with the calls. linger is how
// long a renewal may wait for others to share a script with.
func New(client rueidis.Client, linger time.Duration) *Redis {
	p := newPool(client)
	return &Redis{client: client, pool: p, renewals: newRenewals(p, linger, client.Mode() == rueidis.ClientModeCluster)}
}

// Cluster tells whether the client speaks to a Redis Cluster, where all keys of
// one lock must lie in one slot.
func (r *Redis) Cluster() bool { return r.client.Mode() == rueidis.ClientModeCluster }

// Run takes a call and returns at once. Its answer is delivered exactly once.
func (r *Redis) Run(c Call) { r.pool.submit(c) }

// RunHere runs a call on the caller's goroutine, and returns when it is answered.
func (r *Redis) RunHere(c *Call) {
	if !c.tooLate(time.Now()) {
		r.pool.runOne(c)
	}
}

// Renew takes the renewal of one lease and returns at once; it shares a script
// with others that are due at about the same time.
func (r *Redis) Renew(n Renewal) { r.renewals.add(n) }

// Close sends what is still gathered and waits until every call is answered.
// The client stays open: it belongs to whoever made it.
func (r *Redis) Close() {
	r.renewals.close()
	r.pool.close()
}
