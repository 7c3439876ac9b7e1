package redisclient

import (
	"errors"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Error is the error of a call; see redisio.Error.
type Error = redisio.Error

var (
	// errNotSent is the error of calls whose deadline passed while they were queued.
	errNotSent = &redisio.Error{Transient: true, Err: errors.New(
		"the call was not sent before its deadline: Redis, or this process, does not keep up with all calls")}
	// errClosed is the error of calls after Close.
	errClosed = &redisio.Error{Err: errors.New("the Lockkeeper system is closed")}
	// errMoved is the error of calls whose reply is from a former master.
	errMoved = &redisio.Error{Transient: true, Unsure: true, Err: errors.New("a failover came before the reply")}
	// errUnexpectedReply is the error of calls whose reply the script cannot have given.
	errUnexpectedReply = &redisio.Error{
		Unsure: true, Hint: "is it a Redis, 6.2 or later, without a proxy that changes replies?",
		Err: errors.New("unexpected reply from the script"),
	}
	// errShortReply is the error of renewals whose reply has another number of results.
	errShortReply = errors.New("the reply has another length than the request")
)

// aboutKeys reports whether the keys or arguments of a call were refused, so that Redis is available.
func aboutKeys(err *redisio.Error) bool { return !err.Transient && refusal.AboutKeys(err.Err.Error()) }

// moving reports whether the keys of a script are on two servers while a slot is moved.
func moving(err *redisio.Error) bool { return refusal.Moving(err.Err.Error()) }

// explainMoved converts a redirection to a permanent error if the client is for a single server, since it does
// not follow redirections.
func (p *pool) explainMoved(err *redisio.Error) *redisio.Error {
	if err == nil || p.cluster || !strings.HasPrefix(err.Err.Error(), "MOVED ") {
		return err
	}
	return &redisio.Error{Hint: "the client is for a single server, but this is one of a cluster; " + refusal.ClusterHint, Err: err.Err}
}
