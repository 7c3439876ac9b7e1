package faults

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// limit bounds short operations, even on a busy machine.
const limit = rig.Limit

// server is a redis-server with a clock that can be set.
type server struct {
	*rig.Server
	clock clock
}

// settings are the options of all servers.
var settings = []string{"--busy-reply-threshold", "50", "--enable-protected-configs", "yes"}

// startServer starts a redis-server with a clock.
func startServer(c clock, options ...string) (_ *server, err error) {
	s := &server{clock: c}
	if s.Server, err = rig.Start(rig.Options{Args: slices.Concat(settings, options), Env: s.clock.into}); err != nil {
		return nil, err
	}
	return s, nil
}

// startBehind starts a redis-server behind a proxy that delays its replicas by lag.
func startBehind(lag time.Duration, options ...string) (*server, error) {
	s, err := rig.StartBehind(lag, rig.Options{Args: slices.Concat(settings, options)})
	if err != nil {
		return nil, err
	}
	return &server{Server: s}, nil
}

// crash kills the server, paused or not. Its data and its replies under way are lost; its cluster
// configuration is not.
func (s *server) crash() {
	pid := s.PID()
	s.Kill()
	s.clock.remove(pid)
}

// kill kills the server for good.
func (s *server) kill() {
	s.crash()
	s.Stop()
}

// bare are the servers without their clocks.
func bare(all []*server) (servers []*rig.Server) {
	for _, s := range all {
		servers = append(servers, s.Server)
	}
	return servers
}

// list returns the names that a command lists, without permanent ones: the token counters, the
// memory record of a RedLock, the records of Systems, and turn channels.
func (s *server) list(args ...string) ([]string, error) {
	names, err := s.Do(args...)
	return slices.DeleteFunc(names.Words(), func(name string) bool {
		return strings.HasPrefix(name, "redisson_lock_token:") || name == "lockkeeper_memory" ||
			strings.HasPrefix(name, "{lockkeeper_systems}") ||
			strings.HasPrefix(name, "lockkeeper_turn:")
	}), err
}

// remains returns the keys that locks have left. The record of a command is none of them: one whose request has left
// may be carried out after the clients came to rest, and its record expires.
func (s *server) remains() ([]string, error) {
	keys, err := s.list("KEYS", "*")
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, recordPrefix) }), err
}

// recordPrefix begins the keys of the records of commands.
const recordPrefix = "lockkeeper_calls:"

// content is what a key has: its fields, if it is a hash, and its TTL in ms.
func (s *server) content(key string) string {
	ttl, err := s.Do("PTTL", key)
	if err != nil {
		return ""
	}
	fields, _ := s.Do("HGETALL", key) // an error for another type, which has no words
	return fmt.Sprintf(" %q for %s ms", fields.Words(), ttl.Str)
}
