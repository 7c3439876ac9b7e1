//go:build unix

package redistest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
)

var names atomic.Int64

// Name gives a name for a lock (or anything else) that is unique in this process
// and tells which test it belongs to: "<test name>-<n>". It holds no character
// that means something in a Redis pattern or to a cluster's key hashing.
func Name(t testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.Map(plain, t.Name()), names.Add(1))
}

func plain(r rune) rune {
	switch {
	case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
		return r
	case r == '/':
		return '.'
	default:
		return '_'
	}
}
