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

// Name returns a name for a lock (or anything else) that is unique in this process
// and shows its test: "<test name>-<n>". It holds no character
// with a meaning in Redis patterns or in the key hashing of a cluster.
func Name(t testing.TB) string {
	return fmt.Sprintf("%s-%d", notPlain.ReplaceAllString(t.Name(), "."), names.Add(1))
}
