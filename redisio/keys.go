package redisio

import "github.com/lockkeeper-go/lockkeeper/internal/keyspace"

// TokenKey returns the key of the token counter of a fenced lock. The counter stays when the lock is no longer used.
func TokenKey(name string) string { return keyspace.Token(name) }

// Slot returns the cluster slot of a lock's name or of a key: the CRC16 of its hash tag, or of the key if it has none.
func Slot(key string) uint16 { return keyspace.Slot(key) }
