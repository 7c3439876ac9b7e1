package redistest

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Classes of errors.
var (
	Passing  = redisio.Error{Transient: true}
	Doubtful = redisio.Error{Transient: true, Unsure: true}
	Lasting  = redisio.Error{}
)

// Hinted returns an error with a part of a hint.
func Hinted(hint string) redisio.Error { return redisio.Error{Hint: hint} }

// ExpectError expects an error of the class of another one.
func ExpectError(t testing.TB, what string, e *redisio.Error, want redisio.Error) {
	t.Helper()
	switch {
	case e == nil:
		t.Errorf("%s: no error", what)
	case e.Transient != want.Transient || e.Unsure != want.Unsure ||
		(e.Hint == "") != (want.Hint == "") || !strings.Contains(e.Hint, want.Hint):
		t.Errorf("%s: %+v, want %+v", what, e, want)
	case !strings.Contains(e.Error(), e.Hint) || !strings.Contains(e.Error(), e.Unwrap().Error()):
		t.Errorf("%s: hint or cause is not in %q", what, e)
	}
}
