package actors

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// observed is a system that does not poll, behind a proxy, and what it was seen to do.
type observed struct {
	*Runtime
	server *redistest.Server
	turns  string

	mu        sync.Mutex // guards what follows
	owner     string     // the owner field of the last command
	refused   []uint64   // the commands that were refused
	transfers []machine.Transfer
	crash     func(m any) bool // before which message; may be nil
}

func startObserved(t *testing.T, url func(addr string) string) *observed {
	t.Helper()
	o := &observed{server: redistest.Shared(t)}
	proxy := redistest.NewProxy(t, o.server.Addr())
	o.Runtime = startOn(t, url(proxy.Addr()), func(cfg *Config) {
		cfg.Poll, cfg.CallTimeout, cfg.KeyPrefix, cfg.Idle = time.Hour, time.Minute, "app: ", time.Minute
	}, o.middleware)
	o.turns = keyspace.TurnChannel(o.id)
	proxy.See(func(cmd []string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, word := range cmd {
			if strings.HasPrefix(word, o.id+":") {
				o.owner = word
			}
		}
	})
	return o
}

func plain(addr string) string { return "redis://" + addr }

func (o *observed) middleware(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
		o.mu.Lock()
		if o.crash != nil && o.crash(e.Message) {
			o.crash = nil
			o.mu.Unlock()
			panic(fmt.Sprintf("before %T", e.Message))
		}
		switch m := unrepeated(e.Message).(type) {
		case *kinds.Reply:
			if m.Lock.Outcome == lock.Refused {
				o.refused = append(o.refused, m.Seq)
			}
		case *transferred:
			o.transfers = append(o.transfers, m.transfer)
		}
		o.mu.Unlock()
		next(c, e)
	}
}

// crashOnce makes the actor crash that is about to handle such a message.
func (o *observed) crashOnce(before func(m any) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.crash = before
}

// waitInVain acquires a lock that another client holds for ever, and returns when only a message brings the next try.
func (o *observed) waitInVain(t *testing.T, name string) (granted <-chan request.Outcome, call *request.Call) {
	t.Helper()
	key, result := o.cfg.KeyPrefix+name, make(chan request.Outcome, 1)
	o.server.MustDo(t, "HSET", key, "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57", "1")
	call = &request.Call{Op: request.OpAcquire, Name: name}
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	go func() {
		defer cancel()
		answer, _ := o.Do(ctx, call)
		result <- answer
	}()
	redistest.Eventually(t, "a refusal after the subscription", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.refused) >= 2
	})
	return result, call
}

// transfer makes the waiter the owner in Redis, and notifies it.
func (o *observed) transfer(t *testing.T, name string) machine.Transfer {
	t.Helper()
	o.mu.Lock()
	owner, transfer := o.owner, machine.Transfer{Seq: o.refused[len(o.refused)-1]}
	o.mu.Unlock()
	if _, err := fmt.Sscan(strings.TrimPrefix(owner, o.id+":"), &transfer.Term); err != nil {
		t.Fatalf("%q: %v", owner, err)
	}
	script := `redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 60000)
		return redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' 0 ' .. KEYS[1])`
	o.server.MustDo(t, "EVAL", script, "1", o.cfg.KeyPrefix+name, owner, o.turns, fmt.Sprint(transfer.Term, " ", transfer.Seq))
	return transfer
}

// heardOf returns the transfers that have reached a lock actor.
func (o *observed) heardOf() []machine.Transfer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.transfers
}

// awaitAndRelease waits for the grant of a lock, and releases it.
func (o *observed) awaitAndRelease(t *testing.T, granted <-chan request.Outcome, call *request.Call) {
	t.Helper()
	select {
	case answer := <-granted:
		if answer.Kind != machine.Granted {
			t.Fatalf("the request for a free lock was answered %+v", answer)
		}
		o.giveBack(t, call, answer)
	case <-time.After(redistest.Limit):
		t.Fatal("the lock was not granted")
	}
}

// Nothing but a well-formed message about a lock of this system's reaches a lock actor, and that
// one is granted the lock.
func TestTransfer_ReachesItsLockActor(t *testing.T) {
	o := startObserved(t, plain)
	name := redistest.Name(t) + " with spaces"
	granted, call := o.waitInVain(t, name)
	key := o.cfg.KeyPrefix + name
	for _, payload := range []string{"", "0", "1 1 0", "1 1 0 ", "1 x 0 " + key, "0 1 0 " + key,
		"1 1 0 " + name, "1 1 0 other", "1 1 0 " + key + " "} {
		o.server.MustDo(t, "PUBLISH", o.turns, payload)
	}
	o.server.MustDo(t, "PUBLISH", keyspace.TurnChannel("another"), "1 1 0 "+key)
	want := o.transfer(t, name)
	o.awaitAndRelease(t, granted, call)
	if heard := o.heardOf(); len(heard) != 1 || !reflect.DeepEqual(heard[0], want) {
		t.Errorf("transfers %+v, want %+v", heard, want)
	}
	o.server.MustDo(t, "PUBLISH", o.turns, "77 78 79 "+key)
	redistest.Eventually(t, "the next transfer", func() bool { return len(o.heardOf()) == 2 })
	if got, want := o.heardOf()[1], (machine.Transfer{Term: 77, Seq: 78, Tokens: []int64{79}}); !reflect.DeepEqual(got, want) {
		t.Errorf("transferred %+v, want %+v", got, want)
	}
}

// A lock actor that crashes over a transfer handles it again. A subscriber that does so loses
// that one, and brings the next.
func TestTransfer_IsHandledAgainAfterACrash(t *testing.T) {
	for who, before := range map[string]func(m any) bool{
		"lock actor": func(m any) bool { _, ok := m.(*transferred); return ok },
		"subscriber": func(m any) bool { _, ok := m.(*published); return ok },
	} {
		t.Run(who, func(t *testing.T) {
			o := startObserved(t, plain)
			name := redistest.Name(t)
			granted, call := o.waitInVain(t, name)
			o.crashOnce(before)
			if who == "subscriber" {
				o.server.MustDo(t, "PUBLISH", o.turns, "1 1 0 "+o.cfg.KeyPrefix+name)
			}
			o.transfer(t, name)
			o.awaitAndRelease(t, granted, call)
			if n := len(o.heardOf()); n != 1 {
				t.Errorf("%d transfers were heard of, want 1", n)
			}
		})
	}
}

// The turn channel is subscribed with the first channel of a lock's, and then until Close.
func TestTurnChannel_StaysUntilClose(t *testing.T) {
	o := startObserved(t, plain)
	name := redistest.Name(t)
	o.use(t, "uncontended "+name)
	if n := o.server.Subscribers(t, o.turns); n != 0 {
		t.Errorf("%d subscribers before the first wait", n)
	}
	granted, call := o.waitInVain(t, name)
	channel, waiters := keyspace.Channel(o.cfg.KeyPrefix+name), keyspace.Waiters(o.cfg.KeyPrefix+name)
	o.server.AwaitSubscribers(t, channel, 1)
	o.server.AwaitSubscribers(t, waiters, 1)
	o.server.AwaitSubscribers(t, o.turns, 1)
	o.transfer(t, name)
	o.awaitAndRelease(t, granted, call)
	o.server.AwaitSubscribers(t, channel, 0)
	o.server.AwaitSubscribers(t, waiters, 0)
	o.server.AwaitSubscribers(t, o.turns, 1)
	o.Close(nil)
	o.server.AwaitSubscribers(t, o.turns, 0)
}

// A process receives transfers as soon as the turn channel is confirmed.
func TestReceivesTransfers_FromTheConfirmationOn(t *testing.T) {
	spawned := func(o *observed, name string) *lockActor {
		in := &shell.Shell{PID: actor.NewPID("nonhost", "none"), Process: o.rules.Process(o.subscriber.pid)}
		return newLockActor(o.Runtime, in, kinds.Key{Name: name}, messages.Kind_KIND_PLAIN, nil)
	}
	t.Run("in turn", func(t *testing.T) {
		o := startObserved(t, plain)
		a := spawned(o, redistest.Name(t))
		if a.ReceivesTransfers(1) {
			t.Error("it receives transfers, and has never listened")
		}
		a.listen(1)
		redistest.Eventually(t, "the confirmation", func() bool { return a.ReceivesTransfers(1) })
		a.stopListening()
		if !a.ReceivesTransfers(1) {
			t.Error("it receives no transfers after its last wait")
		}
	})
	t.Run("without the turn channel", func(t *testing.T) {
		user := strings.NewReplacer("/", "", " ", "").Replace(redistest.Name(t))
		server := redistest.Shared(t)
		if err := server.Do(t, "ACL", "SETUSER", user, "on", ">secret", "+@all", "~*", "resetchannels", "&redisson_*",
			"&lockkeeper_waiters:*").Error(); err != nil {
			t.Fatal(err)
		}
		o := startObserved(t, func(addr string) string { return "redis://" + user + ":secret@" + addr })
		name := redistest.Name(t)
		a := spawned(o, name)
		a.listen(1)
		redistest.Eventually(t, "the confirmation", func() bool {
			return o.subscriber.subscriptions.Confirmed(keyspace.Channel(o.cfg.KeyPrefix + name))
		})
		if a.ReceivesTransfers(1) {
			t.Error("it receives transfers to which Redis does not let it subscribe")
		}
	})
}
