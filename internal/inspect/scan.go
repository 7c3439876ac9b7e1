package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// scan calls page with the keys that match the pattern, on every known master: all keys, or the keys of a type. If a
// master does not answer, scan continues with the other masters, and names it in the error.
func (in Inspector) scan(ctx context.Context, pattern, kind string, page func(keys []string) error) error {
	masters, missing := slots.Masters(ctx, in.Client)
	for _, address := range slices.Sorted(maps.Keys(masters)) {
		err := scanNode(ctx, masters[address], pattern, kind, page)
		var failed *redisio.Error
		switch {
		case err == nil:
		case len(masters) == 1 || !errors.As(err, &failed) || !failed.Transient:
			return err
		default:
			failed := fmt.Errorf("the master %s: %w", address, err)
			if missing != nil {
				failed = fmt.Errorf("%w; %w", missing, failed)
			}
			missing = failed
		}
	}
	return missing
}

// scanNode is scan on one server. A page has the keys of several SCANs, until there are PageSize keys: often few keys
// match.
func scanNode(ctx context.Context, node rueidis.Client, pattern, kind string, page func(keys []string) error) error {
	var keys []string
	for cursor := uint64(0); ; {
		var command rueidis.Completed
		if all := node.B().Scan().Cursor(cursor).Match(pattern).Count(PageSize); kind == "" {
			command = all.Build()
		} else {
			command = all.Type(kind).Build()
		}
		entry, err := node.Do(ctx, command).AsScanEntry()
		if err != nil {
			return fmt.Errorf("SCAN: %w", redisio.Classify(err))
		}
		keys, cursor = append(keys, entry.Elements...), entry.Cursor
		if len(keys) < PageSize && cursor != 0 {
			continue
		}
		if err := page(keys); err != nil || cursor == 0 {
			return err
		}
		keys = nil
	}
}

// ErrMore: there are more locks than List may return.
var ErrMore = errors.New("there are more locks than are listed")

// List reads the locks on all masters whose names match, by SCAN, sorted by name. If there are more locks than limit,
// or if List fails, it returns the locks that it has found, with an error.
func (in Inspector) List(ctx context.Context, pattern string, limit int) ([]Lock, error) {
	return in.list(ctx, limit, func(page func(keys []string) error) error {
		return in.scan(ctx, quotePattern(in.Prefix)+pattern, "hash", page)
	})
}

// Find is List without a limit. In the same pass over the keys it finds the names for CountersOf: each key that is
// derived from a name contains the name. Without a pattern almost all keys match, so SCAN finds the hashes, and another
// pass finds the names.
func (in Inspector) Find(ctx context.Context, pattern string) (all []Lock, names Names, err error) {
	if pattern == "*" {
		if all, err = in.List(ctx, pattern, math.MaxInt); err != nil && in.Client.Mode() != rueidis.ClientModeCluster {
			return all, names, err
		}
		names, failed := in.counterNames(ctx, pattern)
		return all, names, cmp.Or(err, failed)
	}
	around := pattern + "*"
	if !ends(pattern) {
		around = "*"
	}
	names = in.names(pattern)
	all, err = in.list(ctx, math.MaxInt, func(page func(keys []string) error) error {
		return in.scan(ctx, "*"+quotePattern(in.Prefix)+around, "", func(keys []string) error {
			hashes, err := in.separate(ctx, keys, names, true)
			return cmp.Or(page(hashes), err)
		})
	})
	return all, names, err
}

// list reads the locks on the pages of keys of hashes with which scan calls its argument.
func (in Inspector) list(ctx context.Context, limit int, scan func(page func(keys []string) error) error) (all []Lock, err error) {
	seen := map[string]bool{} // SCAN may return a key twice, on one page or on two
	err = scan(func(keys []string) error {
		slices.Sort(keys)
		keys = slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return seen[key] })
		views, err := in.Inspect(ctx, in.withoutForeign(ctx, keys), false)
		for _, v := range views {
			seen[in.Prefix+v.Name] = true
		}
		all = append(all, views...)
		if len(all) > limit {
			all, err = all[:limit], cmp.Or(err, ErrMore)
		}
		return err
	})
	slices.SortFunc(all, func(a, b Lock) int { return strings.Compare(a.Name, b.Name) })
	return all, cmp.Or(err, in.Identify(ctx, all))
}

// withoutForeign leaves out hashes with other fields than a lock, with a single command for each key, since there may
// be many keys.
func (in Inspector) withoutForeign(ctx context.Context, keys []string) (rest []string) {
	var commands []rueidis.Completed
	for _, key := range keys {
		commands = append(commands, in.Command("HRANDFIELD", key, "1"))
	}
	for i, result := range in.all(ctx, commands) {
		if fields, err := result.AsStrSlice(); err != nil || mayBeLock(fields) {
			rest = append(rest, keys[i])
		}
	}
	return rest
}
