package inspect

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

// errForeign: the sorted set of the taken permits belongs to another application.
var errForeign = errors.New(
	"the sorted set of the permits that are taken has other members than ids of 16 bytes: it is another application's")

// firstMembers are ranges of ZRANGE, the same as in scripts/common/expirable.lua: the first member is checked before
// the other members are read, since members of another application may be large.
var firstMembers = [][]string{{"0", "0"}, {"0", "15"}, {"-1", "-1"}}

// members are the members of a sorted set in the last range that was read. The error is errForeign if one is not an
// id.
type members struct {
	scores []rueidis.ZScore
	err    error
}

// readTaken reads ranges of the taken permits, one range after the other. It stops reading a key that has no members,
// or a member that is not an id.
func (in Inspector) readTaken(ctx context.Context, keys []string, ranges [][]string) map[string]members {
	all := map[string]members{}
	for _, limits := range ranges {
		var commands []rueidis.Completed
		for _, key := range keys {
			commands = append(commands, in.Command(slices.Concat([]string{"ZRANGE", keyspace.Taken(key)}, limits, []string{"WITHSCORES"})...))
		}
		var more []string
		for i, result := range in.all(ctx, commands) {
			scores, err := result.AsZScores()
			if slices.ContainsFunc(scores, func(s rueidis.ZScore) bool { return len(s.Member) != idBytes }) {
				scores, err = nil, errForeign
			}
			if all[keys[i]] = (members{scores, err}); len(scores) > 0 {
				more = append(more, keys[i])
			}
		}
		keys = more
	}
	return all
}

// permitsOf returns the permits with these ids and expiry times, at a time in epoch ms.
func permitsOf(scores []rueidis.ZScore, now int64) (permits []Permit) {
	for _, p := range scores {
		left := int64(p.Score) - now
		if int64(p.Score) >= never {
			left = -1
		}
		permits = append(permits, Permit{ID: hex.EncodeToString([]byte(p.Member)), Left: left})
	}
	return permits
}
