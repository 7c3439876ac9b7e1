// Package whereabouts writes to Redis where the instances of singletons are, and reads the entries.
package whereabouts

import (
	"cmp"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/singleton"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Board has the whereabouts of all singletons of one System. Its methods return at once, and call done once, on another
// goroutine.
type Board struct {
	redis *redisclient.Redis
	// callTimeout is how long Redis may take to answer.
	callTimeout time.Duration
	// ttl is how long Redis keeps the whereabouts.
	ttl time.Duration
	// tokenCounter is the key of the token counter of all singletons' locks; "" if each lock has its own counter.
	tokenCounter string
}

// New returns a Board. Its goroutines are started on demand. It does not close the client.
func New(client rueidis.Client, callTimeout, ttl time.Duration, tokenCounter string) *Board {
	return &Board{redis: redisclient.New(client, 0), callTimeout: callTimeout, ttl: ttl, tokenCounter: tokenCounter}
}

// Close waits until every call has its reply, or until done. Later calls fail.
func (b *Board) Close(done <-chan struct{}) {
	b.redis.AwaitReplies(done)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b.redis.Close()
	}()
	select {
	case <-closed:
	case <-done:
	}
}

// At writes where an instance is. Fields that were written with a higher token are not changed: written is false then,
// and if the token is from before Redis lost the token counter.
func (b *Board) At(key string, token int64, at singleton.Place, done func(written bool, err error)) {
	b.set(key, "at", token, at.String(), 1, done)
}

// Left writes which messages an instance had begun when it stopped.
func (b *Board) Left(key string, token int64, gate string, begun map[string]uint64, done func(written bool, err error)) {
	b.set(key, "left", token, singleton.LeftText(gate, begun), maxLeft, done)
}

// maxLeft is how many instances may come and go until a proxy looks again.
const maxLeft = 8

func (b *Board) set(key, field string, token int64, text string, limit int, done func(written bool, err error)) {
	call := b.call(scripts.SingletonSet, key, func(r redisclient.Reply) { done(r.N[0] == 1, errorOf(r)) })
	call.Args = []string{field, strconv.FormatInt(token, 10), text,
		strconv.Itoa(limit), strconv.FormatInt(b.ttl.Milliseconds(), 10),
		cmp.Or(b.tokenCounter, keyspace.Token(key))}
	call.Urgent = true // other processes wait for the entry
	b.redis.Run(call)
}

// Look reads the whereabouts.
func (b *Board) Look(key string, done func(w singleton.Whereabouts, err error)) {
	b.redis.Run(b.call(scripts.SingletonInspect, key, func(r redisclient.Reply) {
		done(singleton.Read(r.S[0], r.S[1]), errorOf(r))
	}))
}

func (b *Board) call(script *scripts.Script, key string, replied replied) redisclient.Call {
	return redisclient.Call{
		Script: script, Keys: []string{keyspace.Whereabouts(key)}, Deadline: time.Now().Add(b.callTimeout), To: replied,
	}
}

// errorOf returns nil, not a nil *redisclient.Error, if the call has succeeded.
func errorOf(r redisclient.Reply) error {
	if r.Err == nil {
		return nil
	}
	return r.Err
}

// replied is a redisclient.Receiver.
type replied func(redisclient.Reply)

// Replied implements redisclient.Receiver.
func (f replied) Replied(_ uint64, r redisclient.Reply) { f(r) }
