package grains

import (
	"context"
	"reflect"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/niltest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// The exported functions do not panic with a nil or zero argument, and return an error.
func TestNilArguments_DoNotPanic(t *testing.T) {
	t.Parallel()
	client := redistest.Connect(t, redistest.Shared(t).URL())
	good := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[rueidis.Client](): client, reflect.TypeFor[Config](): Config{},
	}
	d := locktest.Must(New(client, Config{}))(t)
	api := niltest.API{
		Dir: ".", Invalid: lockkeeper.ErrInvalid,
		Functions: map[string]any{"New": New, "ServerOption": func(s *actor.ActorSystem) { ServerOption(s) }, "TermOf": func(ctx actor.Context) { TermOf(ctx) }},
		Types:     map[string][]any{"Directory": {(*Directory)(nil), &Directory{}, d}, "Term": {Term{}}},
		Good: func(_ string, t reflect.Type) (reflect.Value, bool) {
			v, ok := good[t]
			return reflect.ValueOf(v), ok
		},
		Accepts: []string{"ServerOption", "TermOf"},
	}
	api.Check(t)
	var none *Directory
	for _, d := range []*Directory{none, {}, d} {
		d.Lookup().Setup(nil, nil, false)
		d.Lookup().RemovePid(nil, nil)
		if d.Lookup().Get(nil) != nil || d.Provider().StartMember(nil) == nil ||
			d.Provider().StartClient(nil) == nil || d.Provider().Shutdown(true) != nil {
			t.Error("a lookup or provider without a Directory or cluster works")
		}
		d.Lookup().Shutdown()
	}
}
