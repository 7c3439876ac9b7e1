package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/core"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// reading says what a reply consists of; each is documented in its script's header.
type reading uint8

const (
	acquired         reading = iota // acquire
	tookToken                       // fenced_acquire
	set                             // read_write_set
	released                        // release, read_write_release
	renewed                         // renew, read_write_renew
	yielded                         // yield, read_write_yield
	forced                          // force_release and its like
	looked                          // look
	enrolled                        // fair_queue
	passed                          // fair_queue, when it only releases
	tookAll                         // acquire_all
	voted                           // quorum_acquire
	inspected                       // inspect, fair_inspect
	inspectedHolders                // read_write_inspect

	readingBits = 4
)

// tagged notes in a call how its reply is to be read. Its Seq carries that, besides the
// command's.
func tagged(call redisio.Call, seq uint64, how reading) redisio.Call {
	call.Seq = seq<<readingBits | uint64(how)
	return call
}

// misfit is a reply of the right shape that means nothing.
func misfit(reply redisio.Reply) core.Result {
	return core.Result{Outcome: core.Failed, Unsure: true, Err: fmt.Errorf("the reply %v %q means nothing", reply.N, reply.S)}
}

// Read is what a reply to Call or Renewal means to the lock.
func (l *Lock) Read(tag uint64, reply redisio.Reply) (seq uint64, r core.Result) {
	seq = tag >> readingBits
	if err := reply.Err; err != nil {
		return seq, core.Result{Outcome: core.Failed, Err: err, Transient: err.Transient, Unsure: err.Unsure}
	}
	r.Outcome = core.Done
	n := reply.N
	switch reading(tag & (1<<readingBits - 1)) {
	case acquired:
		switch {
		case reply.Nil:
		case n[0] == -2:
			r.Outcome = core.Absent
		default:
			l.refused(&r, n[0], reply.S[0])
		}
	case tookToken, set, tookAll, voted:
		l.status(&r, reply)
	case released:
		if n[0] < 0 {
			r.Outcome = core.Absent
		}
	case renewed:
		if n[0] != 1 {
			r.Outcome, r.Taken = core.Absent, n[0] < 0
		}
	case yielded:
		switch n[0] {
		case -1:
			r.Outcome = core.Absent
		case 0:
			r.Outcome = core.Kept
		default:
			r.Others = int(n[1])
		}
	case forced:
		r.WasHeld = n[0] == 1
	case looked:
		r.Others = int(n[0])
	case enrolled:
		r.OwnTerm = l.ownTerm(reply.S[0])
		switch {
		case n[0] != 1:
			l.refused(&r, n[1], reply.S[0])
		case r.OwnTerm == 0:
			return seq, misfit(reply)
		}
		r.Freed = reply.S[1] == "1"
	case passed:
		if reply.S[1] != "1" {
			r.Outcome = core.Absent
		}
	}
	return seq, r
}

// status reads {status, value, text …}.
func (l *Lock) status(r *core.Result, reply redisio.Reply) {
	switch status, value := reply.N[0], reply.N[1]; status {
	case 1:
		tokens, ok := drawn(reply)
		if !ok {
			*r = misfit(reply)
			return
		}
		r.Tokens = tokens
	case 0:
		l.refused(r, value, reply.S[0])
	case -3:
		*r = core.Result{Outcome: core.Failed, Transient: true, Err: fmt.Errorf(
			"%w, as far as is known: it may have forgotten locks, and stays out until it has been watched for another %v", ErrQuarantine, time.Duration(value)*time.Millisecond)}
	case -1:
		r.Outcome = core.Absent
	default:
		*r = misfit(reply)
	}
}

// drawn are the tokens in a reply: one number, or those of all, as acquire_all lists them.
func drawn(reply redisio.Reply) (tokens []int64, ok bool) {
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

// ErrQuarantine is why a server whose memory is new has no vote.
var ErrQuarantine = errors.New("the server was started lately or flushed")

// milliseconds is a TTL, or very long: Redis knows longer ones than a Duration does, and
// there must be room for the time by the clock that it is added to.
func milliseconds(ttl int64) time.Duration {
	const most = 200 * 365 * 24 * time.Hour
	return time.Duration(max(min(ttl, most.Milliseconds()), -1)) * time.Millisecond
}

func (l *Lock) refused(r *core.Result, ttl int64, holder string) {
	r.Outcome = core.Refused
	r.TTL = milliseconds(ttl)
	r.Holder, r.OwnTerm = holder, l.ownTerm(holder)
}
