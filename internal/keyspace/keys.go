// Package keyspace names the keys and pub/sub channels that are derived from the names of locks, semaphores and
// latches, and has the form and the limits of the data there.
package keyspace

import (
	"slices"
	"strings"
)

// Keys and channels are derived from the name of a lock. They have the same hash tag as the name, so in a
// cluster they are in its slot.

// keyForm describes how keys are derived from a name or from a key prefix. A lock with such a key would
// destroy the data there, so Reserved refuses every key of every form.
type keyForm struct {
	// before comes before the name, which is in braces (see Holds).
	before string
	// behind comes behind the name.
	behind string
	// open: a key of this form continues after behind, and may have text before behind.
	open bool
	// perPrefix: there is one key for each key prefix, which is used instead of the name.
	perPrefix bool
	// holds describes the data under the key.
	holds string
}

// keyForms has the forms of all keys that the functions of this file return.
var keyForms = [...]keyForm{
	ofToken:          {before: "redisson_lock_token:", holds: "the counter of a lock's fencing tokens"},
	ofQueue:          {before: "redisson_lock_queue:", holds: "the queue of a fair lock"},
	ofTimeouts:       {before: "redisson_lock_timeout:", holds: "the timeouts of a fair lock's queue"},
	ofLease:          {behind: ReadLease, open: true, holds: "the lease of a reader"},
	ofWaitQueue:      {before: "lockkeeper_wait_queue:", holds: "the processes that wait for a lock"},
	ofReadWriteQueue: {before: "lockkeeper_read_write_queue:", holds: "the processes that wait for a read/write lock"},
	ofWaitOrder:      {before: "lockkeeper_wait_order:", holds: "the order of the processes that wait for a lock"},
	ofReadWriteOrder: {before: "lockkeeper_read_write_order:", holds: "the order of the processes that wait for a read/write lock"},
	ofTaken:          {behind: ":timeout", holds: "the permits of a semaphore that are taken"},
	ofCalls:          {before: "lockkeeper_calls:", open: true, holds: "the last commands about a semaphore or a latch"},
	ofCounted:        {before: "lockkeeper_counted:", holds: "the ids that have counted a latch down"},
	ofWhereabouts:    {before: "lockkeeper_singleton:", holds: "where the instance of a singleton is"},
	ofMemory:         {behind: "lockkeeper_memory", perPrefix: true, holds: "the age of a RedLock's server"},
	ofSystems:        {behind: "{lockkeeper_systems}", perPrefix: true, holds: "the list of the processes"},
	ofSystem:         {behind: "{lockkeeper_systems}:", open: true, perPrefix: true, holds: "the record of a process"},
}

// ReadLease stands between a reader and the number of its lease, in the key of the lease.
const ReadLease = ":rwlock_timeout:"

const (
	ofToken = iota
	ofQueue
	ofTimeouts
	ofLease // the scripts create these keys
	ofWaitQueue
	ofReadWriteQueue
	ofWaitOrder // the scripts derive these keys from the keys of the wait queues
	ofReadWriteOrder
	ofTaken
	ofCalls
	ofCounted
	ofWhereabouts
	ofMemory
	ofSystems
	ofSystem
)

// key returns the key of a form for a name or a key prefix, or the beginning of the key.
func key(form int, name string) string {
	f := keyForms[form]
	if !f.perPrefix {
		name = Holds(name)
	}
	return f.before + name + f.behind
}

// Channel returns the pub/sub channel for the release of a plain lock.
func Channel(name string) string { return channelOf("redisson_lock__channel", name) }

// Token returns the key of a fenced lock's token counter.
func Token(name string) string { return key(ofToken, name) }

// Queue returns the key of a fair lock's queue, a list of owners.
func Queue(name string) string { return key(ofQueue, name) }

// Timeouts returns the key of the sorted set of the owners in Queue, by the time at which they are
// considered dead.
func Timeouts(name string) string { return key(ofTimeouts, name) }

// ReadWriteChannel returns the pub/sub channel for the release of a read/write lock.
func ReadWriteChannel(name string) string { return channelOf("redisson_rwlock", name) }

// Taken returns the key of the sorted set of the taken permits, by the time at which they expire.
func Taken(name string) string { return key(ofTaken, name) }

// WaitQueue returns the key of the wait queue of a plain or fenced lock; Redisson has no such key.
func WaitQueue(name string) string { return key(ofWaitQueue, name) }

// ReadWriteQueue returns the key of the wait queue of a read/write lock. Such a lock has its own queue: its hash has
// another form, so a lock of another kind cannot be transferred to its waiters.
func ReadWriteQueue(name string) string { return key(ofReadWriteQueue, name) }

// WaitOrder returns the key of the order of the processes in a WaitQueue.
func WaitOrder(name string) string { return key(ofWaitOrder, name) }

// ReadWriteOrder returns the key of the order of the processes in a ReadWriteQueue.
func ReadWriteOrder(name string) string { return key(ofReadWriteOrder, name) }

// Waiters returns the channel to which the clients that use the wait queue subscribe, besides the channel
// of the lock's release. The difference is the number of foreign clients.
func Waiters(name string) string { return channelOf("lockkeeper_waiters", name) }

// TurnChannel returns the channel on which a client is notified of the locks that are transferred to it.
func TurnChannel(client string) string { return "lockkeeper_turn:" + client }

// AskedChannel returns the channel on which other clients ask a client for locks that linger in it without a hold.
func AskedChannel(client string) string { return TurnChannel(client) + ":asked" }

// ShardTurnChannel is like TurnChannel, for a cluster with sharded pub/sub, where a client has a turn
// channel for each lock, in its slot. waiters is the lock's channel of Waiters.
func ShardTurnChannel(client, waiters string) string {
	return TurnChannel(client) + strings.TrimPrefix(waiters, "lockkeeper_waiters")
}

// KeysOf returns keys in the slot of a shard channel. The user of the channel may use at least one of them: the lock's
// name, or a key that begins with it. For redisson_lock__channel:{a} the key is a, and for lockkeeper_turn:CLIENT:x{a}
// it is x{a}. The braces do not show whether they belong to the name.
func KeysOf(channel string) []string {
	tag := hashTag(channel)
	_, name, _ := strings.Cut(strings.TrimPrefix(channel, TurnChannel("")), ":")
	switch {
	case Slot(name) != Slot(channel): // the channel of a latch has no colon before the name
		return []string{tag}
	case strings.HasPrefix(name, "{"): // usually Redisson's
		return []string{tag, name}
	}
	return []string{name, tag}
}

// PermitsChannel returns the pub/sub channel of the permits of a semaphore or an expirable semaphore.
func PermitsChannel(name string) string { return channelOf("redisson_sc", name) }

// Calls returns the prefix of the keys of the command records about a name; Redisson has no such keys.
func Calls(name string) string { return key(ofCalls, name) }

// LatchChannel returns the pub/sub channel of a latch. Redisson puts the name into braces even if it
// has braces.
func LatchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// Counted returns the key of the set of the ids that have counted a latch down; Redisson has no such key.
func Counted(name string) string { return key(ofCounted, name) }

// Whereabouts returns the key that says where the instance of a singleton is; Redisson has no such key.
func Whereabouts(name string) string { return key(ofWhereabouts, name) }

// Patterns that match the results of Calls and Taken, PermitsChannel, and LatchChannel for any name.
const (
	AnyOfCounters     = "*{*:*"
	AnyPermitsChannel = "redisson_sc:*"
	AnyLatchChannel   = "redisson_countdownlatch__channel__{*}"
)

// NamesIn returns the names for which the function of, from this file, returns that key or channel. There are no names
// if the key has another form.
func NamesIn(of func(name string) string, key string) []string {
	if of == nil {
		return nil
	}
	const mark = "{*}"
	before, after, _ := strings.Cut(of(mark), mark)
	name := strings.TrimSuffix(strings.TrimPrefix(key, before), after)
	inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}") // the braces may be added, or part of the name
	names := slices.Compact([]string{inner, name})
	return slices.DeleteFunc(names, func(name string) bool { return of(name) != key })
}

// Memory returns the key of the record of the age of a RedLock server's data; there is one record per key prefix.
func Memory(keyPrefix string) string { return key(ofMemory, keyPrefix) }

// Systems returns the key of the list of all Systems that have a record; there is one list per key prefix.
func Systems(keyPrefix string) string { return key(ofSystems, keyPrefix) }

// System returns the key of the record of a System, in the slot of Systems.
func System(keyPrefix, system string) string { return key(ofSystem, keyPrefix) + system }

// SystemOf returns the id of a client's System, which is the beginning of the client's UUID. A MultiLock or a RedLock
// has its own client UUID, with the same beginning.
func SystemOf(client string) string { return client[:min(len(client), systemLength)] }

// systemLength is the length of the first three groups of a UUID, which have 60 random bits.
const systemLength = 18

// systemDigits is the number of hexadecimal digits of these groups.
const systemDigits = 16

// PermitSystemOf returns the id of the System that has acquired a permit, from the beginning of the permit's
// id. The ids of permits that Redisson has acquired are random.
func PermitSystemOf(id string) string {
	if len(id) < systemDigits {
		return ""
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:systemDigits]
}

// Holds returns the prefix of the keys of a read lock's leases: the name, in braces unless it contains an
// opening brace. That is Redisson's rule, which does not look for a closing brace.
func Holds(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

func channelOf(p, name string) string { return p + ":" + Holds(name) }

// hashTag returns the part of a key that determines its slot.
func hashTag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end]
		}
	}
	return key
}

// Slot returns the cluster slot of a key: the CRC16 of its hash tag, or of the key if it has no hash tag.
func Slot(key string) uint16 {
	key = hashTag(key)
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
