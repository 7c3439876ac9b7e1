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
		if n[0] != 1 {
			l.refused(&r, n[1], reply.S[0])
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
		switch {
		case reply.S[0] != "": // acquire_all lists the tokens of all
			for _, token := range strings.Split(reply.S[0], ",") {
				n, _ := strconv.ParseInt(token, 10, 64)
				r.Tokens = append(r.Tokens, n)
			}
		case value != 0:
			r.Tokens = []int64{value}
		}
	case 0:
		l.refused(r, value, reply.S[0])
	case -3:
		*r = core.Result{Outcome: core.Failed, Transient: true, Err: fmt.Errorf(
			"%w: it may have forgotten locks, and stays out for another %v", ErrQuarantine, time.Duration(value)*time.Millisecond)}
	default:
		r.Outcome = core.Absent
	}
}

// ErrQuarantine is why a server that was started lately has no vote.
var ErrQuarantine = errors.New("the server was started lately")

func (l *Lock) refused(r *core.Result, ttl int64, holder string) {
	r.Outcome = core.Refused
	r.TTL = time.Duration(ttl) * time.Millisecond
	r.Holder, r.OwnTerm = holder, l.ownTerm(holder)
}
