package grains

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// store is the data of a cluster in Redis, in one slot: the members, which member is responsible for which grain, and a
// counter of tokens. The leases of the members are locks, outside this data.
//
// The entry of a grain is "<id of the member>#<token>". The entry says which member is responsible; only that member
// knows whether the grain runs. An entry counts as long as the lease of its member lasts.
//
// Each member has an entry too, its mark. Every registration by the member writes the mark together with the entry of
// the grain. A Redis that has the last mark has all earlier writes, so a member with any number of grains sees from one
// entry whether a failover has lost entries.
//
// Members and entries have a TTL, which each member renews. So what is left when the last member was
// killed expires, and so does removed data that a failover has brought back.
type store struct {
	client rueidis.Client
	// scripts runs the registrations.
	scripts *redisclient.Redis
	prefix  string // Config.KeyPrefix
	name    string // the beginning of all keys, without the prefix
	// newest is the highest token that this process knows.
	newest *atomic.Int64
	// ttl is the TTL of the members and the entries, in ms. An entry must last longer than the lease of its member, or
	// another member could start the grain. It is an hour longer: the entry would end first only if for an hour no
	// renewal of the entry succeeded while the renewals of the lease did.
	ttl int64
}

func newStore(client rueidis.Client, prefix, cluster string, watchdog time.Duration) (store, error) {
	s := store{client: client, scripts: redisclient.New(client, 0), prefix: prefix,
		name: "grains:{" + cluster + "}:", newest: new(atomic.Int64), ttl: (watchdog + time.Hour).Milliseconds()}
	if keyspace.Slot(s.entries()) != keyspace.Slot(s.tokens()) {
		return s, errors.New("the keys are not in one slot: a cluster needs a name, which does not begin with a brace")
	}
	return s, nil
}

func (s store) members() string { return s.prefix + s.name + "members" }
func (s store) entries() string { return s.prefix + s.name + "entries" }
func (s store) tokens() string  { return s.prefix + s.name + "tokens" }

// lease returns the name of the lock that a member holds.
func (s store) lease(member string) string { return s.name + "member:" + member }

// foreign is the error for a key with fields that no Directory has written.
func foreign(key, expected string) error {
	return fmt.Errorf("lockkeeper: grains: %w: the hash %q belongs to another application: expected %s", lockkeeper.ErrRejected, key, expected)
}

// failed returns an error of Redis as ErrRejected or ErrUnavailable; nil for nil.
func failed(err error) error {
	if errors.Is(err, lockkeeper.ErrRejected) {
		return err
	}
	kind := lockkeeper.ErrUnavailable
	if _, answered := rueidis.IsRedisErr(err); answered {
		kind = lockkeeper.ErrRejected
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("lockkeeper: grains: %w: %w", kind, err)
}

// memberOf returns the member of an entry.
func memberOf(entry string) string {
	member, _, _ := strings.Cut(entry, "#")
	return member
}

var (
	errHeld    = errors.New("another member is responsible for the grain")
	errNoLease = errors.New("this member has lost its lease")
)

// entryChanged is the error of a registration that has found another entry than was expected.
type entryChanged string

func (e entryChanged) Error() string { return "the entry of the grain is " + strconv.Quote(string(e)) }

// isEntry reports whether a text has the form of an entry, as grains_register.lua does.
func isEntry(text string) bool {
	_, token, _ := strings.Cut(text, "#")
	_, err := strconv.ParseInt(token, 10, 64)
	return err == nil
}

var (
	unregisterScript = rueidis.NewLuaScript(scripts.GrainsUnregister.Source)
	markScript       = rueidis.NewLuaScript(scripts.GrainsMark.Source)
)

// received receives the reply to a script.
type received redisclient.Reply

func (r *received) Replied(_ uint64, reply redisclient.Reply) { *r = received(reply) }

// register makes a member responsible for a grain, and returns the token of the activation that the member may start.
// Only the reply to this call allows the member to start it. last is the highest token that the member was given in
// this term. An error may leave the entry behind: with Replicas, when too few replicas have confirmed it.
func (s store) register(grain, member, expected string, last int64) (token int64, err error) {
	other := memberOf(expected)
	if other == "" {
		other = member
	}
	var reply received
	s.scripts.RunHere(context.Background(), &redisclient.Call{
		Script: scripts.GrainsRegister, To: &reply, Deadline: time.Now().Add(callTimeout), Confirm: true,
		Keys: []string{s.entries(), s.tokens(), s.prefix + s.lease(member), s.prefix + s.lease(other)},
		Args: []string{grain, member, expected, strconv.FormatInt(s.newest.Load(), 10), strconv.FormatInt(last, 10),
			strconv.FormatInt(s.ttl, 10)},
	})
	if reply.Err != nil {
		return 0, reply.Err.Err
	}
	switch reply.S[0] {
	case "mine":
		token, err := strconv.ParseInt(reply.S[1], 10, 64)
		for known := s.newest.Load(); known < token && !s.newest.CompareAndSwap(known, token); known = s.newest.Load() {
		}
		if reply.Unconfirmed != nil {
			return 0, reply.Unconfirmed.Err
		}
		return token, err
	case "held":
		return 0, errHeld
	case "lost":
		return 0, errNoLease
	}
	return 0, entryChanged(reply.S[1])
}

// entryOf is the entry of a grain that has stopped.
type entryOf struct{ grain, entry string }

// lost returns the grains that have another entry in Redis, or none.
func (s store) lost(ctx context.Context, entries []entryOf) (lost []entryOf, err error) {
	for some := range slices.Chunk(entries, maxEntries) {
		hmget := s.client.B().Hmget().Key(s.entries())
		fields := hmget.Field(some[0].grain)
		for _, one := range some[1:] {
			fields = fields.Field(one.grain)
		}
		now, err := s.client.Do(ctx, fields.Build()).ToArray()
		if err != nil {
			return nil, err
		}
		for i, entry := range now {
			if text, _ := entry.ToString(); text != some[i].entry {
				lost = append(lost, some[i])
			}
		}
	}
	return lost, nil
}

// marked returns the token in the mark of a member; 0 if it has none.
func (s store) marked(ctx context.Context, member string) (token int64, err error) {
	mark, err := s.client.Do(ctx, s.client.B().Hget().Key(s.entries()).Field(member).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	_, text, _ := strings.Cut(mark, "#")
	token, _ = strconv.ParseInt(text, 10, 64)
	return token, err
}

// mark writes the mark of a member again, after a look at all its entries.
func (s store) mark(ctx context.Context, member string) error {
	return markScript.Exec(ctx, s.client, []string{s.entries(), s.tokens()}, []string{
		member, strconv.FormatInt(s.newest.Load(), 10), strconv.FormatInt(s.ttl, 10)}).Error()
}

// keep renews the TTL of the members and the entries.
func (s store) keep(ctx context.Context) error {
	return errors.Join(
		s.client.Do(ctx, s.client.B().Pexpire().Key(s.members()).Milliseconds(s.ttl).Build()).Error(),
		s.client.Do(ctx, s.client.B().Pexpire().Key(s.entries()).Milliseconds(s.ttl).Build()).Error())
}

// maxEntries bounds how long a call keeps Redis busy.
const maxEntries = 500

// unregister removes entries, if they are still the same. With a member, it removes them only if the member's lease has
// ended.
func (s store) unregister(ctx context.Context, member string, gone []entryOf) error {
	keys := []string{s.entries()}
	if member != "" {
		keys = append(keys, s.prefix+s.lease(member))
	}
	var args []string
	for _, one := range gone {
		args = append(args, one.grain, one.entry)
	}
	return unregisterScript.Exec(ctx, s.client, keys, args).Error()
}

// bury removes the records of the dead members, and the entries of members that are not alive, which a failover may
// also have brought back after their member has left. These entries do not keep any grain from starting, so bury is in
// no hurry: it reads one page of the entries, from the cursor on, and returns the cursor of the next page. So it does
// not delay the next view, however many entries there are.
func (s store) bury(ctx context.Context, cursor uint64, alive view, dead []string) (next uint64, err error) {
	page, err := s.client.Do(ctx, s.client.B().Hscan().Key(s.entries()).Cursor(cursor).Count(maxEntries).Build()).AsScanEntry()
	if err != nil {
		return cursor, err
	}
	gone := map[string][]entryOf{}
	for i := 0; i+1 < len(page.Elements); i += 2 {
		grain, entry := page.Elements[i], page.Elements[i+1]
		member := memberOf(entry)
		if _, lives := alive[member]; !lives && isEntry(entry) {
			gone[member] = append(gone[member], entryOf{grain, entry})
		}
	}
	for member, entries := range gone {
		if err := s.unregister(ctx, member, entries); err != nil {
			return cursor, err
		}
	}
	for _, member := range dead {
		if err := s.forget(ctx, member); err != nil {
			return cursor, err
		}
	}
	return page.Cursor, nil
}

// join writes the record of a member, unless a hash belongs to another application. It looks at all members, and at
// some of the entries; the rest are looked at when they are registered.
func (s store) join(ctx context.Context, m Member) error {
	if _, _, err := s.list(ctx); err != nil {
		return err
	}
	some, err := s.client.Do(ctx, s.client.B().Hscan().Key(s.entries()).Cursor(0).Count(16).Build()).AsScanEntry()
	if err != nil {
		return err
	}
	for i := 1; i < len(some.Elements); i += 2 {
		if !isEntry(some.Elements[i]) {
			return foreign(s.entries(), "the entries of grains")
		}
	}
	text, _ := json.Marshal(m) // cannot fail: texts
	return errors.Join(
		s.client.Do(ctx, s.client.B().Hset().Key(s.members()).FieldValue().FieldValue(m.ID, string(text)).Build()).Error(),
		s.keep(ctx))
}

// forget removes the record of a member, and its mark.
func (s store) forget(ctx context.Context, member string) error {
	return errors.Join(
		s.client.Do(ctx, s.client.B().Hdel().Key(s.entries()).Field(member).Build()).Error(),
		s.client.Do(ctx, s.client.B().Hdel().Key(s.members()).Field(member).Build()).Error())
}

// list returns the members whose leases last, and the ids of the members whose leases have ended. It fails if another
// application has written any of the records, so that no foreign record is taken for the record of a dead member.
func (s store) list(ctx context.Context) (alive map[string]Member, dead []string, err error) {
	records, err := s.client.Do(ctx, s.client.B().Hgetall().Key(s.members()).Build()).AsStrMap()
	if err != nil {
		return nil, nil, err
	}
	var members []Member
	var calls rueidis.Commands
	for id, record := range records {
		m := Member{}
		if json.Unmarshal([]byte(record), &m) != nil || m.ID != id {
			return nil, nil, foreign(s.members(), "the members of a cluster")
		}
		members = append(members, m)
		calls = append(calls, s.client.B().Exists().Key(s.prefix+s.lease(id)).Build())
	}
	alive = map[string]Member{}
	if len(calls) == 0 {
		return alive, nil, nil
	}
	for i, reply := range s.client.DoMulti(ctx, calls...) {
		lasts, err := reply.AsBool()
		if err != nil {
			return nil, nil, err
		}
		if m := members[i]; lasts {
			alive[m.ID] = m
		} else {
			dead = append(dead, m.ID)
		}
	}
	return alive, dead, nil
}
