package redisio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

// Error is the error of a call, classified by what can be done about it.
type Error struct {
	// Transient errors may not occur at the next try: a network error, or a server that loads
	// its data, is busy, fails over or is full. All other errors are permanent.
	Transient bool
	// Unsure reports that the script may have run, or may still run.
	Unsure bool
	// Hint is what to do about the error; it may be empty.
	Hint string
	err  error
}

// Error returns Redis's message and the hint.
func (e *Error) Error() string {
	if e == nil || e.err == nil {
		return "no error"
	}
	text := printable.Text(e.err.Error()) // it may quote a key
	if text == "" {
		text = "an error without words"
	}
	if e.Hint == "" {
		return text
	}
	return text + " (" + e.Hint + ")"
}

// Unwrap returns the error of the client.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.err
}

// severalKeys is the error of a script with several KEYS while a cluster moves their slot and they are
// on two servers.
const severalKeys = "TRYAGAIN"

// otherServer are the errors in the middle of a script whose key is on another server; from Redis 7.4 and
// Valkey 8 on, also if only some keys of a command are.
var otherServer = []string{"non local key", "during rehashing of the slot"}

// midway are the errors in the middle of a script, which may have written before, when the cluster has
// just failed.
var midway = []string{"while the cluster is down", "attempted to access a slot not served"}

// ofKeys are words of the errors of Redis and of the scripts that concern the keys or arguments of a
// call: a call with others may succeed.
var ofKeys = []string{"WRONGTYPE", "CROSSSLOT", "LATE the client", "there would be ", `", but `}

// aboutKeys reports whether the keys or arguments of a call were refused, so that Redis is available.
func (e *Error) aboutKeys() bool { return !e.Transient && contains(e.err.Error(), ofKeys) }

func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// moving reports whether the keys of a script are on two servers while a slot is moved.
func (e *Error) moving() bool {
	text := e.err.Error()
	return strings.Contains(text, severalKeys) || contains(text, otherServer)
}

// errNotSent is the error of calls whose deadline passed while they were queued.
var errNotSent = &Error{Transient: true, err: errors.New("the call was not sent before its deadline: Redis, or this process, does not keep up with all calls")}

var errMissing = &Error{err: errors.New("the context or the client is nil")}

// errClosed is the error of calls after Close.
var errClosed = &Error{err: errors.New("the Lockkeeper system is closed")}

// errUnexpectedReply is the error of calls whose reply the script cannot have given.
var errUnexpectedReply = &Error{
	Unsure: true, Hint: "is it a Redis, 6.2 or later, without a proxy that changes replies?",
	err: errors.New("unexpected reply from the script"),
}

// transientWords are the codes of Redis errors that are transient. Redis refuses the
// script before it writes anything, so the outcome is certain.
var transientWords = []string{
	"LOADING", "BUSY", severalKeys, "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM",
	"MISCONF", "NOREPLICAS", "UNBLOCKED", "MOVED", "ASK",
	"max number of clients reached",
	"WAIT cannot be used with replica instances", // the master has just become one
}

// permanent lists the errors of Redis after which the same call would fail again, and
// what the user can do. Redis before 7 wraps errors of a script into a longer text,
// so the words may be anywhere in it.
var permanent = []struct {
	words string
	hint  func(text string) string
}{
	{"WRONGTYPE", fixedHint("the key is used for something else than this kind of lock; choose another name or key prefix")},
	{"NOAUTH", fixedHint("give the client a user name and password; Sentinels have their own")},
	{"WRONGPASS", fixedHint("check the user name and password")},
	{"NOPERM", aclHint},
	{"ACL failure", aclHint},
	{"The user executing the script", aclHint},
	{"cluster support disabled", fixedHint("redis-cluster, and several addresses without master_set, are for clusters; this server is not one of a cluster")},
	{"beginning with: 'SLOTS'", notACluster}, {"beginning with: `SLOTS`", notACluster}, // Redis before 7
	{"beginning with: 'SHARDS'", notACluster}, // Valkey, and Redis from 8 on
	{"beginning with: 'SENTINELS'", noSentinel}, {"beginning with: `SENTINELS`", noSentinel},
	{"No such master with that name", fixedHint("check master_set, the name that the Sentinels have for the master")},
	{"CROSSSLOT", fixedHint("in a cluster all keys of a lock must lie in one slot; check the braces in its name")},
}

var (
	notACluster = fixedHint("if this is a Sentinel, the URL needs the option master_set=NAME")
	noSentinel  = fixedHint("master_set is for Sentinels, and this is none; the URL of a server goes without it")
)

func fixedHint(hint string) func(string) string { return func(string) string { return hint } }

// Sort classifies an error of the client; it returns nil for nil.
func Sort(err error) *Error {
	if err == nil {
		return nil
	}
	var sorted *Error
	if errors.As(err, &sorted) {
		return sorted
	}
	text := err.Error()
	if _, fromRedis := rueidis.IsRedisErr(err); fromRedis || strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH") {
		for _, p := range permanent {
			if strings.Contains(text, p.words) {
				return &Error{Hint: p.hint(text), err: err}
			}
		}
		for _, word := range transientWords {
			// Redis before 7 puts "-" before the code of an error inside a script.
			if strings.HasPrefix(text, word) || strings.Contains(text, ": -"+word) {
				return &Error{Transient: true, err: err}
			}
		}
		if contains(text, otherServer) || contains(text, midway) {
			return &Error{Transient: true, Unsure: true, err: err}
		}
		return &Error{err: err}
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return &Error{Unsure: true, Hint: "the rueidis client was closed; close the Lockkeeper system first", err: err}
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return &Error{Transient: true, err: err} // nothing was sent
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errTimeout
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the connection was closed by the server, or by a proxy before it: %w", err)
	}
	return &Error{Transient: true, Unsure: true, err: err}
}

var (
	errTimeout    = errors.New("no reply from Redis in time")
	errShortReply = errors.New("ERR the reply has another length than the request")
)
