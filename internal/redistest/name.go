package redistest

import (
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
)

var (
	names    atomic.Int64
	notPlain = regexp.MustCompile(`[^\pL\pN_-]`)
)

// Name gives a name for a lock (or anything else) that is unique in this process
// and shows its test: "<test name>-<n>". It holds no character
// that means something in a Redis pattern or to a cluster's key hashing.
func Name(t testing.TB) string {
	return fmt.Sprintf("%s-%d", notPlain.ReplaceAllString(t.Name(), "."), names.Add(1))
}
