package semaphore

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Close removes the record of the last command, unless a copy of a command may still arrive: the record keeps Redis
// from carrying that out late.
func TestSent_IsCertainOnceNoCopyMayArrive(t *testing.T) {
	loading := machine.Failure{Err: errors.New("loading"), Transient: true}
	for _, test := range []struct {
		name    string
		answer  func(*Pool)
		certain bool
	}{
		{"the command has a reply", func(p *Pool) { p.Replied(0, 1, Result{N: [2]int64{1, 1}}) }, true},
		{"the command is under way", func(*Pool) {}, false},
		{"an earlier try has no reply", func(p *Pool) {
			p.Replied(0, 1, Result{Failure: machine.NoReply})
			p.Tick(time.Second)
			p.Replied(time.Second, 1, Result{N: [2]int64{1, 1}})
		}, false},
		{"the wait for the only try is over", func(p *Pool) { p.Tick(testConfig.TryTime()) }, false},
		{"the wait is over between two tries, which Redis has not carried out", func(p *Pool) {
			p.Replied(testConfig.TryTime()-time.Millisecond, 1, Result{Failure: loading})
			p.Tick(testConfig.TryTime())
		}, true},
		{"the actor stops while the command is under way", func(p *Pool) { p.Stop(0, machine.Crashed, "panic") }, false},
		{"the pool is abandoned while the command is under way", func(p *Pool) { p.Abandon(0, machine.Crashed, "panic") }, false},
	} {
		p := New(&testConfig)
		p.SetNextNumber(1)
		p.Change(0, Change{Kind: Add, N: 1, Ref: "change"})
		test.answer(&p)
		if number, certain := p.Sent(); number != 1 || certain != test.certain {
			t.Errorf("%s: Sent returns %d, %v", test.name, number, certain)
		}
	}
}
