package redisio

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/niltest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The exported functions do not panic with a nil or zero argument, and return an error.
func TestNilArguments(t *testing.T) {
	t.Parallel()
	good := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[rueidis.Client](): connect(t, redistest.Shared(t).URL()),
		reflect.TypeFor[rueidis.ClientOption](): rueidis.ClientOption{}, reflect.TypeFor[string](): "", reflect.TypeFor[error](): errors.New("an error"),
		reflect.TypeFor[func(string) string](): Channel,
	}
	api := niltest.API{
		Dir: ".", Skip: []string{"New", "Redis", "Shards", "Subscriptions"},
		Functions: map[string]any{
			"ACL": ACL, "Calls": Calls, "Channel": Channel, "Connect": Connect, "ConnectLater": ConnectLater, "ConnectWith": ConnectWith, "Counted": Counted,
			"HasShards": HasShards, "Holds": Holds, "LatchChannel": LatchChannel, "WaitQueue": WaitQueue, "Masters": Masters, "Memory": Memory, "NamesIn": NamesIn,
			"Options": Options, "PermitSystemOf": PermitSystemOf, "PermitsChannel": PermitsChannel, "Queue": Queue, "ReadWriteChannel": ReadWriteChannel, "Reserved": Reserved,
			"ShardTurnChannel": ShardTurnChannel, "Slot": Slot, "Sort": Sort, "System": System, "SystemOf": SystemOf, "Systems": Systems, "Taken": Taken,
			"Timeouts": Timeouts, "Token": Token, "TurnChannel": TurnChannel, "Twin": Twin, "Waiters": Waiters,
		},
		Types: map[string][]any{"Error": {(*Error)(nil), &Error{}}, "Rights": {Rights{}}},
		Good: func(t reflect.Type) (reflect.Value, bool) {
			v, ok := good[t]
			return reflect.ValueOf(v), ok
		},
		Accepts: []string{"Error.Unwrap"},
	}
	api.Check(t)
}
