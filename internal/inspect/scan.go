package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// scan calls page with the keys of each SCAN that match the pattern, on every known master. If one does not answer,
// scan continues with the others, and names it in the error.
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

// scanNode is scan on one server.
func scanNode(ctx context.Context, node rueidis.Client, pattern, kind string, page func(keys []string) error) error {
	for cursor := uint64(0); ; {
		entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(PageSize).Type(kind).Build()).AsScanEntry()
		if err != nil {
			return fmt.Errorf("SCAN: %w", redisio.Classify(err))
		}
		if err := page(entry.Elements); err != nil {
			return err
		}
		if cursor = entry.Cursor; cursor == 0 {
			return nil
		}
	}
}

// ErrMore: there are more locks than List may return.
var ErrMore = errors.New("there are more locks than are listed")

// List reads the locks on all masters whose names match, by SCAN, sorted by name. If there are more than limit, or if
// it fails, it returns those that it has found, with an error.
func (in Inspector) List(ctx context.Context, pattern string, limit int) ([]Lock, error) {
	var all []Lock
	seen := map[string]bool{} // SCAN may return a key twice
	err := in.scan(ctx, quotePattern(in.Prefix)+pattern, "hash", func(keys []string) error {
		keys = slices.DeleteFunc(keys, func(key string) bool { return seen[key] })
		views, err := in.Inspect(ctx, keys, false)
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

// quotePattern quotes a text for a pattern of SCAN.
func quotePattern(text string) string {
	return regexp.MustCompile(`[*?\[\]\\^]`).ReplaceAllString(text, `\$0`)
}
