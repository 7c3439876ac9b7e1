// Package redisio opens the Redis client of a System: Connect reads URLs, for a single server, a cluster or Sentinels,
// with TLS; ConnectWith takes options. Error classifies an error of Redis; errors.As finds it in the errors that
// Lockkeeper returns. ACL returns the rights that the client's user needs.
package redisio
