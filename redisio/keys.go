package redisio

import (
	"slices"
	"strings"
)

// The names that Redisson derives from a lock's name. They share the name's hash
// tag, so that in a cluster they lie in its slot.

// Channel returns the pub/sub channel for the release of a plain lock.
func Channel(name string) string { return prefix("redisson_lock__channel", name) }

// Token returns the key of a fenced lock's token counter.
func Token(name string) string { return prefix("redisson_lock_token", name) }

// Queue returns the key of a fair lock's queue, a list of owners.
func Queue(name string) string { return prefix("redisson_lock_queue", name) }

// Timeouts returns the key of the sorted set of when each owner in Queue counts as dead.
func Timeouts(name string) string { return prefix("redisson_lock_timeout", name) }

// ReadWriteChannel returns the pub/sub channel for the release of a read/write lock.
func ReadWriteChannel(name string) string { return prefix("redisson_rwlock", name) }

// Taken returns the key of the sorted set of the permits that are taken, and when they expire.
func Taken(name string) string { return Holds(name) + ":timeout" }

// Line returns the key of the line of processes that wait for a lock; Redisson has no such key.
func Line(name string) string { return prefix("lockkeeper_line", name) }

// Waiters returns the channel to which a client subscribes besides the channel of a lock's release,
// so that the others on that one can be told: they do not know the line.
func Waiters(name string) string { return prefix("lockkeeper_waiters", name) }

// TurnChannel returns the channel on which a client hears of the locks that are transferred to it.
func TurnChannel(client string) string { return "lockkeeper_turn:" + client }

// ShardTurnChannel is what TurnChannel is in a cluster with sharded pub/sub: there a client has one for
// each lock, in its slot. waiters is the lock's channel of Waiters.
func ShardTurnChannel(client, waiters string) string {
	return TurnChannel(client) + strings.TrimPrefix(waiters, "lockkeeper_waiters")
}

// keysOf returns keys in the slot of a shard channel, at least one of which the user of the channel may use, too:
// the lock's name, or a key that begins with it. For redisson_lock__channel:{a} that is a, and for
// lockkeeper_turn:CLIENT:x{a} it is x{a}. Which of them, the braces do not say.
func keysOf(channel string) []string {
	tag := hashTag(channel)
	_, name, _ := strings.Cut(strings.TrimPrefix(channel, TurnChannel("")), ":")
	switch {
	case Slot(name) != Slot(channel): // a latch's has no colon before the name
		return []string{tag}
	case strings.HasPrefix(name, "{"): // mostly Redisson's
		return []string{tag, name}
	}
	return []string{name, tag}
}

// PermitsChannel returns the pub/sub channel of the permits of a semaphore, also of those that expire.
func PermitsChannel(name string) string { return prefix("redisson_sc", name) }

// Calls returns the prefix of the keys in which clients keep their last commands about a name,
// which must not be carried out twice; Redisson has no such keys.
func Calls(name string) string { return prefix("lockkeeper_calls", name) }

// LatchChannel returns the pub/sub channel of a latch. Redisson puts the name into braces even if it
// brings its own.
func LatchChannel(name string) string { return "redisson_countdownlatch__channel__{" + name + "}" }

// Counted returns the key of the set of those who have counted a latch down by id; Redisson has no
// such key.
func Counted(name string) string { return prefix("lockkeeper_counted", name) }

// Patterns of what Calls, Taken, PermitsChannel and LatchChannel return for any name.
const (
	AnyCalls          = "lockkeeper_calls:*"
	AnyTaken          = "*:timeout"
	AnyPermitsChannel = "redisson_sc:*"
	AnyLatchChannel   = "redisson_countdownlatch__channel__{*}"
)

// NamesIn returns the names for which one of these functions returns that key or channel: none if it is
// another's.
func NamesIn(of func(name string) string, key string) []string {
	if of == nil {
		return nil
	}
	const mark = "{*}"
	before, after, _ := strings.Cut(of(mark), mark)
	name := strings.TrimSuffix(strings.TrimPrefix(key, before), after)
	inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}") // in braces, or with some of its own
	names := slices.Compact([]string{inner, name})
	return slices.DeleteFunc(names, func(name string) bool { return of(name) != key })
}

// Memory returns the key of the record of how old the memory of a RedLock's server is; there is
// one per key prefix.
func Memory(keyPrefix string) string { return keyPrefix + "lockkeeper_memory" }

// Systems returns the key of the list of all Systems that have a record; there is one per key
// prefix.
func Systems(keyPrefix string) string { return keyPrefix + "{lockkeeper_systems}" }

// System returns the key of the record of a System, in the slot of Systems.
func System(keyPrefix, system string) string { return Systems(keyPrefix) + ":" + system }

// SystemOf returns the System of a client: the beginning of the client's UUID. A MultiLock or a
// RedLock is a client of its own, of its System.
func SystemOf(client string) string { return client[:min(len(client), systemLength)] }

// systemLength is that of the first three groups of a UUID, which have 60 random bits.
const systemLength = 18

// systemDigits is how many hexadecimal digits they have.
const systemDigits = 16

// PermitSystemOf returns what System the id of a permit begins with, in hexadecimal digits: that which has
// taken it, unless Redisson has, whose ids are random.
func PermitSystemOf(id string) string {
	if len(id) < systemDigits {
		return ""
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:systemDigits]
}

// Holds returns the prefix of the keys of a read lock's leases.
func Holds(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// prefix puts the name into braces unless it brings an opening brace of its own;
// that is Redisson's rule, and it looks for nothing but that one character.
func prefix(p, name string) string {
	if strings.Contains(name, "{") {
		return p + ":" + name
	}
	return p + ":{" + name + "}"
}

// hashTag returns the part of a key that decides on its slot.
func hashTag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			return key[open+1 : open+1+end]
		}
	}
	return key
}

// Slot returns the cluster slot of a key: the CRC16 of its hash tag, or of the key if it has
// none.
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
