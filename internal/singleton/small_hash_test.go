package singleton

import "github.com/lockkeeper-go/lockkeeper/internal/testing/explore"

// meanings are the meanings of the fields of a small world, for a digest of what can change its future.
var meanings = map[string]explore.Meaning{
	"setting": explore.Skipped, "small.now": explore.Skipped, "violation": explore.Skipped, "Limits": explore.Skipped,
	"size": explore.Skipped, "bytes": explore.Skipped, // which are equal for all messages
	"lastMessage": explore.Skipped, // no gate knows that many proxies
	"lastAnswer":  explore.Age, "since": explore.Age, "lastTry": explore.Age, "pause": explore.Length,
}

// Hash implements explore.World.
func (w *small) Hash() uint64 { return w.digest.Sum(w.now, w, explore.Last{}) }
