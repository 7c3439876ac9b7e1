package redisio_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/niltest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The exported functions do not panic with a nil or zero argument, and return an error.
func TestNilArguments_DoNotPanic(t *testing.T) {
	t.Parallel()
	good := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[rueidis.Client](): redistest.Connect(t, redistest.Shared(t).URL()),
		reflect.TypeFor[rueidis.ClientOption](): rueidis.ClientOption{}, reflect.TypeFor[string](): "", reflect.TypeFor[error](): errors.New("an error"),
	}
	api := niltest.API{
		Dir: ".",
		Functions: map[string]any{
			"ACL": redisio.ACL, "Connect": redisio.Connect, "ConnectLater": redisio.ConnectLater, "ConnectWith": redisio.ConnectWith,
			"Options": redisio.Options, "Classify": redisio.Classify,
		},
		Types: map[string][]any{"Error": {(*redisio.Error)(nil), &redisio.Error{}}, "Rights": {redisio.Rights{}}},
		Good: func(_ string, t reflect.Type) (reflect.Value, bool) {
			v, ok := good[t]
			return reflect.ValueOf(v), ok
		},
		Accepts: []string{"Error.Unwrap"},
	}
	api.Check(t)
}
