// Package redisio opens the Redis client of a System: Connect reads URLs, for a single server, a cluster or Sentinels,
// with TLS; ConnectWith takes options. Error is the class of an error of Redis, in the chain of the errors that
// Lockkeeper returns. ACL returns the rights that the client's user needs.
package redisio
