package lock

import (
	"reflect"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// A lock keeps its work while any part of it is in use: what leaveWork does not look at would be lost.
func TestWork_IsKeptWhileAnyPartIsInUse(t *testing.T) {
	parts := map[string]work{
		"main":          {main: op{kind: opAcquire}},
		"renewal":       {renewal: renewal{op: op{kind: opRenew}}},
		"sync":          {sync: syncing{op: op{kind: opSyncQueue}}},
		"background":    {background: make([]op, 1)},
		"takes":         {takes: make([]unansweredTake, 1)},
		"pendingCounts": {pendingCounts: make([]countChange, 1)},
		"ensures":       {ensures: make([]ensure, 1)},
		"extensions":    {extensions: make([]extension, 1)},
		"sub":           {sub: machine.Subscription{Until: 1}},
		"wait":          {wait: waiting{contest: contest{Contest: machine.Contest{Refused: true}}}},
		"wait.sent":     {wait: waiting{sent: make([]confirmation, 1)}},
		"wait.transfer": {wait: waiting{transfer: machine.Transfer{Term: 1}}},
	}
	fields := reflect.TypeFor[work]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; reflect.ValueOf(parts[name]).IsZero() {
			t.Errorf("%s is not tested", name)
		}
	}
	for name, w := range parts {
		if w.isEmpty() {
			t.Errorf("%s alone does not keep the work", name)
		}
	}
}

// A held lock needs no work between two commands, nor does a lock that is free again.
func TestWork_IsLeftAfterEachCommand(t *testing.T) {
	l := New(&machine.Config{Watchdog: 30e9, Renewal: 10e9, CallTimeout: 1e9, QueueLimit: 1}, &Features{})
	l.SetNextTerm(1)
	reply := func(when string) {
		t.Helper()
		if l.work == noWork {
			t.Errorf("%s: the command under way is not remembered", when)
		}
		if l.Replied(l.now, l.seq, Result{Outcome: Done}); l.work != noWork {
			t.Errorf("%s: the work is kept: %+v", when, *l.work)
		}
	}
	l.Acquire(0, machine.Request{ID: 1, Ref: t})
	reply("acquired")
	l.Tick(10e9)
	reply("renewed")
	l.Release(10e9, machine.Release{ID: 1, Ref: t})
	reply("released")
	if !reflect.ValueOf(*noWork).IsZero() {
		t.Errorf("the work of all locks without any has changed: %+v", *noWork)
	}
}
