package protocol_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Every command that ends a hold transfers the lock to the client with the first entry. The message has the
// term, the command to which it is the answer, and the tokens.
func TestTransfer_GoesToTheFirstEntry(t *testing.T) {
	r := startReal(t)
	shared := lock.Command{Shared: 1, Entry: lock.Entry{Mode: machine.Shared}}
	fenced := lock.Command{Count: 1, Tokens: 3, Entry: lock.Entry{Tokens: 4}}
	once := lock.Command{Count: 1}
	for name, test := range map[string]struct {
		kind  protocol.Kind
		waits lock.Command
		ends  lock.Command
		turn  machine.Transfer
	}{
		"plain":       {kind: protocol.Reentrant, waits: once, ends: lock.Command{Kind: lock.Release}, turn: machine.Transfer{}},
		"fenced":      {kind: protocol.Reentrant, waits: fenced, ends: lock.Command{Kind: lock.Release}, turn: machine.Transfer{Tokens: []int64{7}}},
		"plain yield": {kind: protocol.Reentrant, waits: once, ends: lock.Command{Kind: lock.Yield}, turn: machine.Transfer{}},
		"reader":      {kind: protocol.ReadWrite, waits: shared, ends: lock.Command{Kind: lock.Release}, turn: machine.Transfer{}},
		"downgrade":   {kind: protocol.ReadWrite, waits: shared, ends: lock.Command{Kind: lock.Release, Shared: 1}, turn: machine.Transfer{}},
		"writer":      {kind: protocol.ReadWrite, waits: once, ends: lock.Command{Kind: lock.Yield}, turn: machine.Transfer{}},
	} {
		t.Run(name, func(t *testing.T) {
			key := "a lock, " + name
			var clients [2]protocol.Member
			for i := range clients {
				options := &protocol.Options{Client: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i), WaitQueue: queueSettings}
				clients[i] = protocol.Member{Lock: protocol.New(test.kind, key, options), Fenced: true}
			}
			run := func(client int, c lock.Command, want lock.Outcome) {
				t.Helper()
				c.Lease = time.Minute
				if got := r.run(t, clients[client:client+1], -1, c); got.Outcome != want {
					t.Fatalf("%+v: %+v", c, got)
				}
			}
			channel := keyspace.TurnChannel("00000001-0000-4000-8000-000000000000")
			r.subscribe(t, 1, channel, true)
			defer r.subscribe(t, 1, channel, false)
			first := once
			first.Kind, first.Seq, first.Term, first.Tokens = lock.Acquire, 1, 1, test.waits.Tokens
			run(0, first, lock.Done)
			test.waits.Kind, test.waits.Seq, test.waits.Term, test.waits.Entry.Term, test.waits.Entry.TTL, test.waits.Entry.Listens = lock.Acquire, 2, 5, 5, time.Minute, true
			run(1, test.waits, lock.Refused)
			test.waits.Seq = 9
			run(1, test.waits, lock.Refused)
			test.ends.Seq, test.ends.Term = 3, 1
			run(0, test.ends, lock.Done)

			var payload string
			_, published := r.look(t)
			for _, message := range published {
				if rest, ok := strings.CutPrefix(message, channel+" "); ok {
					payload = rest
				}
			}
			got, turn, ok := protocol.ParseTurn(payload)
			test.turn.Term, test.turn.Seq = 5, 9
			if !ok || got != key || fmt.Sprint(turn) != fmt.Sprint(test.turn) {
				t.Errorf("%q was read as %q, %+v, %v; want %+v", published, got, turn, ok, test.turn)
			}
			run(1, lock.Command{Kind: lock.Renew, Seq: 10, Term: 5}, lock.Done)
		})
	}
}
