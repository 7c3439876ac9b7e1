package keyspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The names are Redisson's names. They are in the slot of the lock if its name has a valid hash tag, or no hash tag.
func TestNames_AreThoseOfRedisson(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tagged   string
		sameSlot bool
	}{
		"n": {"{n}", true}, "a{b}c": {"a{b}c", true}, "ключ": {"{ключ}", true}, "a b:c": {"{a b:c}", true},
		"": {"{}", true}, "a{b": {"a{b", false}, "a}b": {"{a}b}", false}, "{}x": {"{}x", false}, "}{": {"}{", false}, "a{}b{c}": {"a{}b{c}", false},
	} {
		got := fmt.Sprint(
			Channel(name), " ", Token(name), " ", Queue(name), " ", Timeouts(name), " ", ReadWriteChannel(name), " ",
			WaitQueue(name), " ", ReadWriteQueue(name), " ", WaitOrder(name), " ", ReadWriteOrder(name), " ",
			Waiters(name), " ", ShardTurnChannel("c", Waiters(name)), " ", Holds(name), " ", PermitsChannel(name),
			" ", Calls(name), " ", Taken(name), " ", Counted(name), " ", Whereabouts(name), " ", LatchChannel(name),
		)
		want := strings.ReplaceAll(
			"redisson_lock__channel:# redisson_lock_token:# redisson_lock_queue:# redisson_lock_timeout:# redisson_rwlock:# "+
				"lockkeeper_wait_queue:# lockkeeper_read_write_queue:# lockkeeper_wait_order:# lockkeeper_read_write_order:# "+
				"lockkeeper_waiters:# lockkeeper_turn:c:# # redisson_sc:# "+
				"lockkeeper_calls:# #:timeout lockkeeper_counted:# lockkeeper_singleton:#",
			"#", test.tagged,
		) + " redisson_countdownlatch__channel__{" + name + "}"
		if got != want {
			t.Errorf("%q has the names %s, want %s", name, got, want)
		}
		for _, of := range []func(string) string{Calls, Taken, PermitsChannel, LatchChannel} {
			names := NamesIn(of, of(name))
			if !slices.Contains(names, name) || slices.ContainsFunc(names, func(n string) bool { return of(n) != of(name) }) {
				t.Errorf("%q has the names %q", of(name), names)
			}
			if names := NamesIn(of, name+":timeout"); len(names) > 0 && !strings.Contains(name, "{") {
				t.Errorf("%q has the names %q", name+":timeout", names)
			}
		}
		for _, channel := range []string{
			Channel(name), Channel(name) + ":c:1", ReadWriteChannel(name), PermitsChannel(name), Waiters(name),
			ShardTurnChannel("c", Waiters(name)), LatchChannel(name),
		} {
			keys := KeysOf(channel)
			if test.sameSlot && Slot(name) == Slot(channel) &&
				!slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, name) }) {
				t.Errorf("%q has the keys %q", channel, keys)
			}
			if slices.ContainsFunc(keys, func(key string) bool { return Slot(key) != Slot(channel) }) {
				t.Errorf("the keys %q are not in the slot of %q", keys, channel)
			}
		}
		if same := Slot(name) == Slot(Channel(name)); name != "" && same != test.sameSlot {
			t.Errorf("%q and its channel in one slot: %v, want %v", name, same, test.sameSlot)
		}
	}
	if got := Memory("app:"); got != "app:lockkeeper_memory" {
		t.Errorf("the key of the memory is %q", got)
	}
}
