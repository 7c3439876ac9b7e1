package console

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

const (
	// maxFleet bounds the locks of all Systems that are kept and shown, on pages of maxRows.
	maxFleet = 10_000
	// fleetPause is the minimum time between two refreshes of all locks.
	fleetPause = 10 * time.Second
)

// WithFleet adds a page, ?fleet=1, with all locks that are held in Redis, by any System or Redisson client.
// To find them the console scans all keys of type hash, some 500 at a time, at most once in 10 s for all
// viewers, for at most 5 s, and only while that page has viewers; it shows at most 10,000 locks. The user of
// the client needs the rights of a reader, which docs/acl.md lists. keyPrefix is the Config.KeyPrefix of
// the Systems.
func WithFleet(client rueidis.Client, keyPrefix string) Option {
	if client == nil {
		return nil
	}
	return func(c *console) { c.inspector = &inspect.Inspector{Client: client, Prefix: keyPrefix} }
}

// refreshFleet returns a snapshot of the locks of all Systems.
func (c *console) refreshFleet(ctx context.Context, _ []lockID) *snapshot {
	s := c.newSnapshot()
	all, err := c.inspector.List(ctx, "*", maxFleet)
	s.failed(err)
	_, err = c.sys.Locks(ctx) // only to notice that the System is closed: the stream ends then
	s.failed(err)
	for _, v := range all {
		s.Locks = append(s.Locks, s.lockOf(v))
	}
	slices.SortStableFunc(s.Locks, byWait)
	s.At = time.Now()
	s.addJournal(c.journal)
	return s
}

// lockOf converts a lock in Redis.
func (s *snapshot) lockOf(v inspect.Lock) lock {
	first := v.Owners[0]
	l := lock{
		Name: v.Name, Kind: v.Kind, Held: true, Shared: first.Mode == "read",
		Holders: len(v.Owners) + int(v.MoreOwners), Owner: first.Field, Count: int(first.Count.N), Note: first.Note,
		Waiting: v.LongestWait().N, Token: v.Token, Lease: v.TTL,
		Listeners: v.Waiters, HolderWaiters: v.HolderWaiters(), Asked: true, Problems: v.Problems,
	}
	if first.HeldAtLeast.Known {
		since := time.Now().Add(-time.Duration(first.HeldAtLeast.N) * time.Millisecond)
		l.Since, l.AtLeast = &since, true
	}
	for _, o := range v.Owners {
		l.Here = l.Here || keyspace.SystemOf(o.Process.Client) == keyspace.SystemOf(s.Client)
	}
	l.Process = recordOf(first.Process)
	l.Process.Here = l.Here
	return l
}

// recordOf converts a process.
func recordOf(p inspect.Process) *system {
	return &system{
		Client: p.Client, Application: p.Application, Host: p.Host, PID: p.PID, Since: p.Since, Version: p.Version,
		Seen: p.Seen, Overdue: p.Overdue,
	}
}
