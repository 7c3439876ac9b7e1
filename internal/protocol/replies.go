package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// replyFormat is the format of a reply, as in redisclient.Reply. The headers of the scripts document them.
type replyFormat = uint8

const (
	acquired         replyFormat = iota // acquire
	fencedAcquired                      // fenced_acquire
	set                                 // read_write_set
	released                            // release, read_write_release
	renewed                             // renew, read_write_renew
	yielded                             // yield, read_write_yield
	forced                              // force_release and its like
	waitersCounted                      // count_waiters
	queueSynced                         // sync_queue
	queueReleased                       // sync_queue, when it only releases
	allAcquired                         // acquire_all
	voted                               // majority_acquire
	inspected                           // inspect, fair_inspect
	inspectedHolders                    // read_write_inspect
)

// unexpected returns the result for a reply of the right shape that no script gives.
func unexpected(reply redisclient.Reply) lock.Result {
	err := fmt.Errorf("unexpected reply from script: %v %q", reply.N, reply.S)
	return lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Unsure: true, Err: err}}
}

// Read returns the result of a command from the reply to its Call or Renewal.
func (l *Lock) Read(reply redisclient.Reply) (r lock.Result) {
	if err := reply.Err; err != nil {
		return lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: err, Transient: err.Transient, Unsure: err.Unsure}}
	}
	r.Outcome = lock.Done
	n, how := reply.N, reply.Format
	switch how {
	case acquired:
		switch {
		case reply.Nil:
			r.Alone = true
		case n[0] == scripts.OthersWait:
		case n[0] == scripts.NoKey:
			r.Outcome = lock.Absent
		default:
			l.refused(&r, n[0], reply.S[0])
		}
	case fencedAcquired, set, allAcquired, voted:
		l.status(&r, reply)
		r.Alone = how == fencedAcquired && n[0] == scripts.Granted && r.Outcome == lock.Done
	case released:
		if n[0] < 0 {
			r.Outcome = lock.Absent
		}
	case renewed:
		if n[0] != scripts.Renewed {
			r.Outcome, r.Taken = lock.Absent, n[0] == scripts.Taken
		}
	case yielded:
		switch n[0] {
		case scripts.Absent:
			r.Outcome = lock.Absent
		case scripts.NotReleased:
			r.Outcome = lock.Renewed
		default:
			r.Others = int(n[1])
		}
	case forced:
		r.WasHeld = n[0] == 1
	case waitersCounted:
		r.Others = int(n[0])
	case queueSynced:
		r.OwnTerm = l.ownTerm(reply.S[0])
		switch {
		case n[0] != scripts.Granted:
			l.refused(&r, n[1], reply.S[0])
		case r.OwnTerm == 0:
			return unexpected(reply)
		}
		r.Freed = reply.S[1] == "1"
	case queueReleased:
		if reply.S[1] != "1" {
			r.Outcome = lock.Absent
		}
	}
	if why := reply.Unconfirmed; why != nil && (r.Outcome == lock.Renewed || r.Outcome == lock.Done && how != yielded) {
		r = lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Err: why, Transient: why.Transient, Unsure: true, Unconfirmed: true}}
	}
	return r
}

// status reads {status, value, text …}.
func (l *Lock) status(r *lock.Result, reply redisclient.Reply) {
	switch status, value := reply.N[0], reply.N[1]; status {
	case scripts.Granted, scripts.OthersWait:
		tokens, ok := drawn(reply)
		if !ok {
			*r = unexpected(reply)
			return
		}
		r.Tokens = tokens
	case scripts.Refused:
		l.refused(r, value, reply.S[0])
	case scripts.TooNew:
		*r = lock.Result{Outcome: lock.Failed, Failure: machine.Failure{Transient: true, Err: fmt.Errorf(
			"%w, as far as is known: it may have forgotten locks, and stays out until it has been watched for another %v",
			ErrQuarantine, time.Duration(value)*time.Millisecond)}}
	case scripts.Absent:
		r.Outcome = lock.Absent
	default:
		*r = unexpected(reply)
	}
}

// drawn returns the tokens in a reply: one number, or the numbers of all locks, as acquire_all lists them. ok is false
// if they are invalid.
func drawn(reply redisclient.Reply) (tokens []int64, ok bool) {
	if reply.S[0] == "" {
		if reply.N[1] > 0 {
			tokens = []int64{reply.N[1]}
		}
		return tokens, reply.N[1] >= 0
	}
	for _, text := range strings.Split(reply.S[0], ",") {
		token, err := strconv.ParseInt(text, 10, 64)
		if err != nil || token <= 0 {
			return nil, false
		}
		tokens = append(tokens, token)
	}
	return tokens, true
}

// ErrQuarantine is the error of a server that does not vote because its memory is new.
var ErrQuarantine = errors.New("the server was recently started, flushed or promoted")

// milliseconds returns a TTL, at most 200 years: Redis allows longer ones than a Duration, and adding the current
// time must not overflow.
func milliseconds(ttl int64) time.Duration {
	const most = 200 * 365 * 24 * time.Hour
	return time.Duration(max(min(ttl, most.Milliseconds()), -1)) * time.Millisecond
}

func (l *Lock) refused(r *lock.Result, ttl int64, holder string) {
	r.Outcome = lock.Refused
	r.TTL = milliseconds(ttl)
	r.Holder, r.OwnTerm = holder, l.ownTerm(holder)
}
