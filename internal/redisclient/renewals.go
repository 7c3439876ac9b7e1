package redisclient

import (
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/redisio"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// renewalBatch is the number of leases that one script renews, as Redisson's lockWatchdogBatchSize. A batch of 1000
// saves Redis another quarter of the work, but blocks Redis for a millisecond (measured).
const renewalBatch = 100

// Renewal is the renewal of one lease.
type Renewal struct {
	// Script is scripts.Renew or scripts.ReadWriteRenew.
	Script *scripts.Script
	Key    string
	Owner  string
	Lease  time.Duration
	// Extra are the arguments of Script for each lease after owner and lease.
	Extra []string
	// Confirm makes the renewal wait for replicas; see Call.Confirm.
	Confirm bool
	// Immediate sends the renewal at once instead of waiting for other renewals.
	Immediate bool
	// Format is like Call.Format.
	Format uint8
	// Deadline ends the wait for the reply; see RenewalDeadline.
	Deadline time.Time
	// To receives a Reply whose N[0] is scripts.Renewed, scripts.Gone or scripts.Taken.
	To  Receiver
	Seq uint64
}

// reply delivers the reply to the renewal.
func (n *Renewal) reply(r Reply) {
	r.Format = n.Format
	n.To.Replied(n.Seq, r)
}

// RenewalDeadline returns the Deadline of a renewal whose reply should arrive by should and is useless after latest.
// The deadline is latest, but in a cluster half way between the two, since the replies of several servers are awaited
// together, and a server that does not answer must not cause the loss of leases on other servers.
func (r *Redis) RenewalDeadline(should, latest time.Time) time.Time {
	late := max(latest.Sub(should), 0)
	if r.Cluster() {
		late /= 2
	}
	return should.Add(late)
}

// renewals combines renewals that are due at about the same time into few scripts.
type renewals struct {
	pool       *pool
	batchDelay time.Duration
	cluster    bool

	mu sync.Mutex
	// pending are the renewals of each script to be sent.
	pending map[batchKey][]Renewal
	// count is the number of pending renewals.
	count int
	// usualBatch is the average number per script of the last flush.
	usualBatch int
	timer      *time.Timer
	// rounds is the number of rounds in progress.
	rounds int
	// immediate reports that a pending renewal is Immediate.
	immediate bool
}

// batchKey contains the properties that the renewals of one script must share. In a cluster the keys of a script must
// be in one slot.
type batchKey struct {
	script  *scripts.Script
	slot    uint16
	confirm bool
}

func newRenewals(p *pool, batchDelay time.Duration, cluster bool) *renewals {
	return &renewals{pool: p, batchDelay: batchDelay, cluster: cluster, pending: map[batchKey][]Renewal{}}
}

func (r *renewals) add(n Renewal) {
	by := batchKey{script: n.Script, confirm: n.Confirm}
	if r.cluster {
		by.slot = keyspace.Slot(n.Key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.pending[by]
	if batch == nil {
		batch = make([]Renewal, 0, r.usualBatch)
	}
	r.pending[by] = append(batch, n)
	r.count++
	switch {
	case n.Immediate && r.rounds > 0:
		r.immediate = true
	case n.Immediate || r.count >= renewalBatch || r.batchDelay <= 0:
		r.flush()
	case r.count == 1:
		if r.timer == nil {
			r.timer = time.AfterFunc(r.batchDelay, r.delayOver)
		} else {
			r.timer.Reset(r.batchDelay)
		}
	}
}

// InRound calls a function in which many renewals may become due. The immediate renewals (Renewal.Immediate) of a round
// share scripts: otherwise each would need a worker, and goroutines of a busy process wait long for a processor.
func (r *Redis) InRound(f func()) {
	r.renewals.begin()
	defer r.renewals.end()
	f()
}

func (r *renewals) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds++
}

func (r *renewals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rounds--; r.immediate { // even during other rounds: they may overlap for as long as the process is busy
		r.flush()
	}
}

func (r *renewals) delayOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
}

func (r *renewals) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.flush()
}

// flush sends the pending renewals; the caller holds the lock.
func (r *renewals) flush() {
	if r.count == 0 {
		return
	}
	r.usualBatch = r.count / len(r.pending)
	for _, batch := range r.pending {
		r.pool.submit(renewalCall(batch))
	}
	clear(r.pending)
	r.count, r.immediate = 0, false
}

// renewalBatchCall delivers the reply of one script to the receivers of its renewals.
type renewalBatchCall []Renewal

type batchReceiver interface {
	deliverBatch(p *pool, result rueidis.RedisResult, unconfirmed *redisio.Error)
}

func renewalCall(batch []Renewal) Call {
	keys := make([]string, len(batch))
	args := make([]string, 0, (2+len(batch[0].Extra))*len(batch))
	deadline := batch[0].Deadline
	for i, n := range batch {
		keys[i] = n.Key
		args = append(args, n.Owner, strconv.FormatInt(n.Lease.Milliseconds(), 10))
		args = append(args, n.Extra...)
		if n.Deadline.After(deadline) {
			deadline = n.Deadline
		}
	}
	return Call{
		Script: batch[0].Script, Keys: keys, Args: args,
		Urgent: true, Renews: true, Confirm: batch[0].Confirm,
		Deadline: deadline, To: renewalBatchCall(batch),
	}
}

// Replied delivers one reply to all receivers of the batch.
func (b renewalBatchCall) Replied(_ uint64, reply Reply) {
	for _, n := range b {
		n.reply(reply)
	}
}

// read returns the number for each lease.
func (b renewalBatchCall) read(result rueidis.RedisResult) ([]int64, error) {
	elements, err := result.ToArray()
	if err == nil && len(elements) != len(b) {
		err = errShortReply
	}
	if err != nil {
		return nil, err
	}
	renewed := make([]int64, len(b))
	for i := range elements {
		if renewed[i], err = elements[i].ToInt64(); err != nil {
			return nil, errUnexpectedReply
		}
	}
	return renewed, nil
}

// deliverBatch delivers the reply for each lease. While a cluster moves the slot, the keys of a batch
// may be on two servers, and Redis refuses the script: then each lease is renewed separately.
func (b renewalBatchCall) deliverBatch(p *pool, result rueidis.RedisResult, unconfirmed *redisio.Error) {
	renewed, err := b.read(result)
	if err != nil {
		classified := redisio.Classify(err)
		if len(b) > 1 && moving(classified) {
			for i := range b {
				p.submit(renewalCall(b[i : i+1]))
			}
			return
		}
		classified = p.explainMoved(classified)
		for range b {
			p.watch.reportRenewal(0, classified)
		}
		b.Replied(0, Reply{Err: classified})
		return
	}
	for i, n := range b {
		p.watch.reportRenewal(renewed[i], nil)
		n.reply(Reply{N: [3]int64{renewed[i]}, Unconfirmed: unconfirmed})
	}
}
