package status

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// known is a machine in one state.
type known struct {
	machine.Machine
	here    machine.Snapshot
	holders []machine.Holder
	waiter  any
}

func (k *known) Snapshot() machine.Snapshot             { return k.here }
func (k *known) Outstanding() ([]machine.Holder, []any) { return k.holders, nil }
func (k *known) FirstWaiter() any                       { return k.waiter }

// A list has what this process knows, from its first hold and its first waiter; one token of a lock made of several
// would not say which of them it is for.
func TestLock_IsKnownFromItsFirstHoldOrWaiter(t *testing.T) {
	const now = machine.Instant(time.Minute)
	call := func(age time.Duration, note string) *request.Call {
		c := &request.Call{Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED, Note: note}
		c.Since = now - age
		return c
	}
	holders := []machine.Holder{{Ref: call(5*time.Second, "")}, {Ref: call(2*time.Second, "backup")}, {Ref: call(time.Second, "later")}}
	held := &known{
		here:    machine.Snapshot{HeldHere: true, Count: 3, Waiters: 1, Until: now + machine.Instant(9*time.Second), Tokens: []int64{7, 8}},
		holders: holders, waiter: call(time.Second, ""),
	}
	of := &messages.Lock{Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED, Name: "name"}
	list := func(token int64) *messages.Status {
		return &messages.Status{
			Lock: of, Mode: messages.Mode_MODE_SHARED, Locked: true, HeldHere: true, HoldCount: 3, Holders: 3, Waiters: 1, Token: token,
			Ttl: request.Duration(9 * time.Second), HeldFor: request.Duration(5 * time.Second), WaitingFor: request.Duration(time.Second), Note: "backup",
		}
	}
	waits := &known{here: machine.Snapshot{Waiters: 2}, waiter: call(4*time.Second, "")}
	overdue := &known{here: machine.Snapshot{HeldHere: true, Until: now - 1}}
	inRedis := &messages.Status{Locked: true, HoldCount: 9, Ttl: request.Duration(time.Hour)}
	Lock{Machine: held, Now: now}.AddTo(inRedis)
	for name, c := range map[string]struct{ got, want *messages.Status }{
		"idle":    {Lock{Machine: new(known), Label: "name", Now: now}.Listed(), nil},
		"held":    {Lock{Machine: held, Label: "name", Now: now}.Listed(), list(7)},
		"several": {Lock{Machine: held, Label: "name", Several: true, Now: now}.Listed(), list(0)},
		"waits": {Lock{Machine: waits, Label: "name", Now: now}.Listed(), &messages.Status{
			Lock: of, Mode: messages.Mode_MODE_SHARED, Waiters: 2, WaitingFor: request.Duration(4 * time.Second)}},
		"overdue": {Lock{Machine: overdue, Label: "name", Now: now}.Listed(), &messages.Status{
			Lock: &messages.Lock{Name: "name"}, Locked: true, HeldHere: true, Ttl: request.Duration(0)}},
		"in Redis": {inRedis, &messages.Status{
			Locked: true, HoldCount: 9, Ttl: request.Duration(time.Hour), HeldHere: true, Waiters: 1, Token: 7,
			HeldFor: request.Duration(5 * time.Second), WaitingFor: request.Duration(time.Second)}},
	} {
		if !proto.Equal(c.got, c.want) {
			t.Errorf("%s: %v, expected %v", name, c.got, c.want)
		}
	}
}
