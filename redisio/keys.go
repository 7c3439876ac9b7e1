package redisio

import "strings"

// The names that Redisson derives from a lock's name. They share the name's hash
// tag, so that in a cluster they lie in its slot.

// Channel is the pub/sub channel on which the release of a plain lock is told.
func Channel(name string) string { return prefix("redisson_lock__channel", name) }

// Token is the counter of a fenced lock's tokens.
func Token(name string) string { return prefix("redisson_lock_token", name) }

// Queue is the list of those who wait for a fair lock, and Timeouts the sorted set of
// when each counts as dead.
func Queue(name string) string { return prefix("redisson_lock_queue", name) }

// Timeouts goes with Queue.
func Timeouts(name string) string { return prefix("redisson_lock_timeout", name) }

// ReadWriteChannel is the channel on which the release of a read/write lock is told.
func ReadWriteChannel(name string) string { return prefix("redisson_rwlock", name) }

// Writer is where a waiting writer announces itself to readers; Redisson has no such key.
func Writer(name string) string { return prefix("lockkeeper_writer", name) }

// Memory is the record of how old the memory of a RedLock's server is known to be, one for
// all locks whose keys begin with a prefix.
func Memory(keyPrefix string) string { return keyPrefix + "lockkeeper_memory" }

// Holds is how the keys begin that tell the leases of a read lock's holds.
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

// Slot is the cluster slot of a key: CRC16 of its hash tag, or of the whole key.
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			key = key[open+1 : open+1+end]
		}
	}
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
