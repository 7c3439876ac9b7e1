package inspect

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// errForeign is that permits that are taken are another application's sorted set.
var errForeign = errors.New("the sorted set of the permits that are taken has other members than ids of 16 bytes: it is another application's")

// firstMembers are ranges of ZRANGE, the same as in scripts/expirable.lua: the first member is looked at before the others,
// which may be large if they are another application's.
var firstMembers = [][]string{{"0", "0"}, {"0", "15"}, {"-1", "-1"}}

// members are those of a sorted set in the last range that was read. The error is errForeign if one is no id.
type members struct {
	scores []rueidis.ZScore
	err    error
}

// taken reads ranges of the permits that are taken, one range after the other. It reads no more of a key when that has
// no members, or a member that is no id.
func (l Inspector) taken(ctx context.Context, keys []string, ranges [][]string) map[string]members {
	all := map[string]members{}
	for _, limits := range ranges {
		var commands []rueidis.Completed
		for _, key := range keys {
			commands = append(commands, l.Command(slices.Concat([]string{"ZRANGE", redisio.Taken(key)}, limits, []string{"WITHSCORES"})...))
		}
		var more []string
		for i, result := range l.all(ctx, commands) {
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

// permitsOf are the permits with these ids and times, at a time in epoch ms.
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
