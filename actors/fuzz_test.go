package actors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/shell"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Any bytes that can be read as a request either pass the check, and then it asks only
// for what is allowed; or they are answered by a refusal that says why, without the hold id.
func FuzzRequests(f *testing.F) {
	types := requestTypes()
	system := quiet.ActorSystem()
	f.Cleanup(system.Shutdown)
	owner := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	seeds := []proto.Message{
		&messages.Release{Lock: &messages.Lock{Name: "orders"}, HoldId: "hold id 123 4567"},
		&messages.AcquirePermits{Semaphore: &messages.Semaphore{Name: "orders"}, Permits: -1, Wait: durationpb.New(-1)},
		&messages.TrySetPermits{Semaphore: &messages.Semaphore{Name: "orders"}, Permits: 1, Ttl: durationpb.New(1)},
	}
	for _, lease := range []*durationpb.Duration{nil, durationpb.New(time.Second), durationpb.New(1), durationpb.New(-1)} {
		seeds = append(seeds, &messages.Extend{Lock: &messages.Lock{Name: "orders"}, Lease: lease})
	}
	for _, acquire := range []*messages.Acquire{
		{}, {Lock: &messages.Lock{}}, {Lock: &messages.Lock{Name: "orders"}, Owner: owner, Lease: durationpb.New(time.Second)},
		{Lock: &messages.Lock{Name: "orders"}, Owner: &actor.PID{Id: "future$1"}, Wait: durationpb.New(0)},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_RED}, Lease: durationpb.New(time.Minute)},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}, Permits: machine.MaxTogether},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_EXPIRABLE_SEMAPHORE}, Permits: machine.MaxTogether + 1},
		{Lock: &messages.Lock{Name: "orders"}, Permits: 1},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_LATCH}}, {Lock: &messages.Lock{Name: "orders", Kind: 66}},
		{Lock: &messages.Lock{Name: "orders", Kind: -1, Mode: 77}},
		{Lock: &messages.Lock{Name: "orders", Mode: messages.Mode_MODE_SHARED}},
		{Lock: &messages.Lock{Name: "orders", Members: []*messages.Lock{{Name: "a"}}}},
		{Lock: &messages.Lock{Name: "orders", Kind: messages.Kind_KIND_MULTI, Members: []*messages.Lock{{Name: "a"}}}},
		{Lock: multi(&messages.Lock{Name: "b"}, &messages.Lock{Name: "a", Kind: messages.Kind_KIND_FENCED}), MaxHold: durationpb.New(time.Hour)},
		{Lock: multi(&messages.Lock{Name: "a"}, &messages.Lock{Name: "a", Kind: messages.Kind_KIND_FAIR})},
		{Lock: multi(&messages.Lock{Kind: messages.Kind_KIND_MULTI})}, {Lock: multi()},
		{Lock: &messages.Lock{Name: "orders"}, Lease: &durationpb.Duration{Seconds: 1, Nanos: -1}},
		{Lock: &messages.Lock{Name: "orders"}, Wait: &durationpb.Duration{Seconds: -1 << 63}},
		{Lock: &messages.Lock{Name: "orders"}, Wait: &durationpb.Duration{Seconds: 315576000000}, MaxHold: &durationpb.Duration{}},
		{Lock: &messages.Lock{Name: "orders"}, Wait: durationpb.New(-time.Second)},
		{Lock: &messages.Lock{Name: strings.Repeat("x", request.MaxNameLength)}},
	} {
		seeds = append(seeds, acquire)
	}
	for _, seed := range seeds {
		wire, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		for i := range types {
			f.Add(uint8(i), wire, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, wire []byte, setting uint8) {
		r := unstarted("1", rueidis.ClientModeStandalone)
		if setting&1 != 0 {
			r = unstarted("1", rueidis.ClientModeCluster)
		}
		if setting&2 != 0 {
			r.rules.KeyPrefix = "app:"
		}
		r.rules.Config = &machine.Config{Watchdog: time.Minute}
		if setting&4 != 0 {
			r.red.Store(&[]*Runtime{r})
		}
		r.rules.Actors = system
		m := types[int(kind)%len(types)].New().Interface()
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		about := aboutOf(m)
		call, err := r.rules.Read(m, owner)
		if err == nil {
			expectAllowed(t, r, m, call)
			return
		}
		text := err.Error()
		if strings.TrimSpace(text) == "" || !utf8.ValidString(text) {
			t.Errorf("%v: refused with %q", m, text)
		}
		failed := request.Refusal(call.Op, machine.Invalid, text)
		answer := call.By.(*request.ByMessage).Message(r, call, &failed)
		type refusal interface {
			proto.Message
			GetReason() messages.Reason
			GetDetail() string
		}
		no, ok := answer.(refusal)
		if !ok || no.GetReason() != messages.Reason_REASON_INVALID || no.GetDetail() == "" || !proto.Equal(aboutOf(no), about) {
			t.Errorf("%v: answered %v", m, answer)
			return
		}
		if _, err := proto.Marshal(no); err != nil {
			t.Errorf("the answer to %v cannot be sent: %v", m, err)
		}
		if release, ok := m.(*messages.Release); ok && len(release.HoldId) > 12 && !strings.Contains(fmt.Sprint(about), release.HoldId) {
			for _, shown := range []string{text, fmt.Sprint(answer)} {
				if strings.Contains(shown, release.HoldId) {
					t.Errorf("the hold id is shown: %s", shown)
				}
			}
		}
	})
}

// requestTypes are the types of the requests, in the order of their names, as the inputs that were found need it.
func requestTypes() (all []protoreflect.MessageType) {
	protoregistry.GlobalTypes.RangeMessages(func(m protoreflect.MessageType) bool {
		if request.IsMessage(m.Zero().Interface()) {
			all = append(all, m)
		}
		return true
	})
	slices.SortFunc(all, func(a, b protoreflect.MessageType) int {
		return strings.Compare(string(a.Descriptor().Name()), string(b.Descriptor().Name()))
	})
	return all
}

// aboutOf returns the lock, the semaphore or the latch that a message names.
func aboutOf(m proto.Message) proto.Message {
	switch m := m.(type) {
	case interface{ GetLock() *messages.Lock }:
		return m.GetLock()
	case interface{ GetSemaphore() *messages.Semaphore }:
		return m.GetSemaphore()
	}
	return m.(interface{ GetLatch() *messages.Latch }).GetLatch()
}

func multi(members ...*messages.Lock) *messages.Lock {
	return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: members}
}

// expectAllowed checks that a request which has passed asks for nothing that is not allowed.
func expectAllowed(t *testing.T, r *Runtime, m proto.Message, call *request.Call) {
	t.Helper()
	key, members := kinds.KeyOf(call), call.Members
	newLockActor(r, new(shell.Shell), key, call.LockKind(), members) // finds a kind of lock for it
	if n := call.Count; n != nil {
		full := r.rules.KeyPrefix + key.Name
		if key.Name == "" || len(full) > request.MaxNameLength || !utf8.ValidString(full) || call.Wait < 0 ||
			!call.IsLatch() && (n.N < -machine.MaxPermits || n.N > machine.MaxPermits) || n.TTL != 0 && n.TTL < request.MinLease {
			t.Errorf("%v passed as %+v", m, n)
		}
		return
	}
	lock := aboutOf(m).(*messages.Lock)
	all := []*messages.Lock{lock}
	if lock.Kind == messages.Kind_KIND_MULTI {
		all = lock.Members
		if len(all) < 1 || len(all) > request.MaxMembers || members == nil || len(members.Sorted) != len(all) || key.Name != members.ID() {
			t.Errorf("%v passed as %+v", m, members)
			return
		}
	} else if members != nil || key.Name != lock.Name || len(lock.Members) > 0 {
		t.Errorf("%v passed as %+v", m, key)
	}
	names := map[string]bool{}
	for _, one := range all {
		_, kind := messages.Kind_name[int32(one.Kind)]
		_, mode := messages.Mode_name[int32(one.Mode)]
		switch full := r.rules.KeyPrefix + one.Name; {
		case !kind, one.Kind > messages.Kind_KIND_EXPIRABLE_SEMAPHORE, !mode, one.Name == "",
			len(full) > request.MaxNameLength, !utf8.ValidString(full), names[one.Name],
			one.Mode == messages.Mode_MODE_SHARED && one.Kind != messages.Kind_KIND_READ_WRITE,
			one.Kind == messages.Kind_KIND_RED && r.red.Load() == nil:
			t.Errorf("%v passed", m)
		}
		names[one.Name] = true
	}
	var leases []*durationpb.Duration
	switch m := m.(type) {
	case *messages.Extend:
		leases = append(leases, m.Lease)
	case *messages.Acquire:
		leases = append(leases, m.Lease, m.MaxHold)
		if m.Wait.AsDuration() < 0 || m.Lease != nil && m.MaxHold != nil || m.Owner != nil && request.IsFuture(m.Owner) ||
			m.Permits < 0 || m.Permits > machine.MaxTogether || m.Permits > 0 && lock.Kind != messages.Kind_KIND_EXPIRABLE_SEMAPHORE {
			t.Errorf("%v passed", m)
		}
	}
	for _, d := range leases {
		if d != nil && (d.CheckValid() != nil || d.AsDuration() < request.MinLease || d.AsDuration() > request.MaxLease) {
			t.Errorf("%v passed", m)
		}
	}
}

// A name is refused with words that say what is allowed, or it can be used: all keys of
// the lock, whatever its kind, then lie in one slot if there is a cluster.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{
		"", "n", "a{b}c", "a{b", "a}b", "{}x", "a{}b{c}", "}{", "{{a}}", "{a}", "{a}:timeout",
		"redisson_lock_queue:{a}", "lockkeeper_memory", "ключ", "\xff", "half a rune \xd0", "\x00", " ",
		strings.Repeat("x", 508), strings.Repeat("x", 509), strings.Repeat("ж", 256), strings.Repeat("ж", 257),
	} {
		for _, prefix := range []string{"", "app:", "{app}:", "{", "}"} {
			f.Add(prefix, name, true)
			f.Add(prefix, name, false)
		}
	}
	f.Fuzz(func(t *testing.T, prefix, name string, cluster bool) {
		if !utf8.ValidString(prefix) {
			return // which Config does not let pass
		}
		r := unstarted("1", rueidis.ClientModeStandalone)
		if cluster {
			r = unstarted("1", rueidis.ClientModeCluster)
		}
		r.rules.KeyPrefix = prefix
		full := prefix + name
		err := r.rules.CheckName(name)
		if err != nil {
			for word, meant := range map[string]bool{
				"empty":      name == "",
				"512":        name != "" && len(full) > 512,
				"UTF-8":      len(full) <= 512 && !utf8.ValidString(name),
				"reserved":   keyspace.Reserved(full) != "",
				"share":      keyspace.Twin(full) != "",
				"{tag}":      cluster && strings.ContainsAny(full, "{}"),
				"braces put": cluster && strings.ContainsAny(full, "{}"),
			} {
				if strings.Contains(err.Error(), word) && !meant && !strings.Contains(name, word) {
					t.Errorf("%q is refused with %v", full, err)
				}
			}
			return
		}
		if name == "" || len(full) > 512 || !utf8.ValidString(full) || keyspace.Reserved(full) != "" || keyspace.Twin(full) != "" {
			t.Errorf("%q passed", full)
		}
		if !cluster {
			return
		}
		slot := keyspace.Slot(full)
		for _, derived := range []string{
			keyspace.Channel(full), keyspace.Token(full), keyspace.Queue(full), keyspace.Timeouts(full),
			keyspace.ReadWriteChannel(full), keyspace.WaitQueue(full), keyspace.ReadWriteQueue(full),
			keyspace.WaitOrder(full), keyspace.ReadWriteOrder(full), keyspace.Holds(full) + ":field",
		} {
			if keyspace.Slot(derived) != slot {
				t.Errorf("%q passed, and %q is in another slot", full, derived)
			}
		}
	})
}
