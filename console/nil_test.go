package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/niltest"
)

var saysNil = regexp.MustCompile("System (of the lock )?is nil")

// The exported functions do not panic with nil or zero arguments, and a console without a System reports that.
func TestNilArguments_DoNotPanic(t *testing.T) {
	t.Parallel()
	s, _ := locktest.New(t, lockkeeper.Config{})
	good := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[rueidis.Client](): s.Client, reflect.TypeFor[*lockkeeper.System](): s.System,
		reflect.TypeFor[string](): "", reflect.TypeFor[time.Duration](): time.Second, reflect.TypeFor[lockkeeper.Config](): lockkeeper.Config{},
		reflect.TypeFor[*console.Journal](): console.NewJournal(), reflect.TypeFor[console.Option](): console.WithForceRelease(),
	}
	api := niltest.API{
		Dir: ".",
		Functions: map[string]any{
			"Handler": console.Handler, "NewJournal": console.NewJournal, "WithContext": console.WithContext, "WithFleet": console.WithFleet,
			"WithForceRelease": console.WithForceRelease, "WithHosts": console.WithHosts, "WithInterval": console.WithInterval, "WithJournal": console.WithJournal,
		},
		Types: map[string][]any{"Journal": {(*console.Journal)(nil), &console.Journal{}}},
		Good: func(_ string, t reflect.Type) (reflect.Value, bool) {
			v, ok := good[t]
			return reflect.ValueOf(v), ok
		},
	}
	api.Check(t)

	for what, handler := range map[string]http.Handler{
		"a nil System": console.Handler(nil, console.WithForceRelease()),
		"nil options": console.Handler(
			s.System, nil, console.WithContext(nil), //lint:ignore SA1012 on purpose
			console.WithFleet(nil, ""), console.WithJournal(nil), console.WithInterval(0),
		),
	} {
		for _, path := range []string{"/", "/lock?name=a&kind=plain", "/data.json", "/events", "/release?name=a&kind=plain&owner=00000000-0000-4000-8000-000000000000:1"} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			request.Host = "localhost"
			if strings.HasPrefix(path, "/release") {
				request.Method = http.MethodPost
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, request)
			cancel()
			if says := saysNil.MatchString(w.Body.String()); says != (what == "a nil System") {
				t.Errorf("%s: %s: %d, and it names a nil System: %v: %s", what, path, w.Code, says, w.Body)
			}
		}
	}
}
