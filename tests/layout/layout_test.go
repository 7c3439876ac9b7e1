package layout_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A package imports only the listed packages of this module, which are themselves listed, and only the listed packages
// import rueidis, proto.actor, protobuf and OpenTelemetry.
func TestImports_RunOneWay(t *testing.T) {
	const module = "github.com/lockkeeper-go/lockkeeper"
	may := map[string][]string{
		"internal/requestqueue":       {},
		"internal/machine":            {"internal/requestqueue"},
		"internal/lock":               {"internal/machine", "internal/requestqueue"},
		"internal/host":               {"internal/printable"},
		"internal/mailbox":            {},
		"internal/observe":            {"internal/host", "internal/machine", "messages"},
		"internal/expirable":          {"internal/machine", "internal/requestqueue"},
		"internal/semaphore":          {"internal/machine", "internal/requestqueue"},
		"scripts":                     {"internal/keyspace"},
		"messages":                    {},
		"internal/singleton":          {},
		"internal/whereabouts":        {"internal/keyspace", "internal/redisclient", "internal/singleton", "scripts"},
		"internal/keyspace":           {},
		"internal/refusal":            {},
		"internal/hello":              {},
		"internal/forms":              {"internal/keyspace", "scripts"},
		"redisio":                     {"internal/printable", "internal/forms", "internal/keyspace", "internal/refusal", "internal/hello", "scripts"},
		"internal/redisclient/slots":  {"internal/refusal", "redisio"},
		"internal/redisclient/pubsub": {"internal/keyspace", "internal/hello", "internal/redisclient/slots", "redisio"},
		"internal/redisclient":        {"internal/keyspace", "internal/refusal", "internal/redisclient/pubsub", "internal/redisclient/slots", "redisio", "scripts"},
		"internal/protocol": {
			"internal/machine", "internal/lock", "internal/expirable", "internal/semaphore", "internal/forms", "internal/keyspace",
			"internal/redisclient", "scripts",
		},
		"internal/backend": {
			"internal/machine", "internal/lock", "internal/expirable", "internal/semaphore", "internal/forms", "internal/keyspace",
			"internal/redisclient", "internal/protocol", "redisio",
		},
		"internal/request": {"internal/machine", "internal/forms", "internal/keyspace", "messages"},
		"internal/kinds": {
			"internal/machine", "internal/lock", "internal/expirable", "internal/semaphore", "internal/backend",
			"internal/forms", "internal/host", "internal/keyspace", "internal/observe", "internal/protocol",
			"internal/redisclient", "internal/request", "messages",
		},
		"internal/records":     {"internal/backend", "internal/keyspace", "internal/protocol", "internal/request", "messages"},
		"internal/delivery":    {"internal/host", "internal/request"},
		"internal/status":      {"internal/machine", "internal/request", "messages"},
		"internal/shell":       {"internal/delivery"},
		"internal/owners":      {"internal/delivery", "internal/machine", "internal/request"},
		"internal/alarm":       {},
		"internal/boottime":    {},
		"internal/faultinject": {},
		"internal/watch":       {"messages"},
		"internal/middleware":  {"internal/delivery", "internal/request"},
		"actors": {
			"internal/alarm", "internal/backend", "internal/boottime", "internal/delivery", "internal/faultinject",
			"internal/host", "internal/keyspace", "internal/kinds", "internal/machine", "internal/mailbox",
			"internal/middleware", "internal/observe", "internal/owners", "internal/records", "internal/redisclient",
			"internal/request", "internal/shell", "internal/status", "internal/watch", "messages",
		},
		"internal/printable": {},
		".": {
			"actors", "internal/delivery", "internal/host", "internal/keyspace", "internal/records",
			"internal/request", "internal/printable", "internal/machine", "internal/singleton", "internal/watch",
			"internal/whereabouts", "messages", "redisio", "internal/redisclient/pubsub",
		},
		"internal/inspect": {"redisio", "internal/forms", "internal/keyspace", "internal/redisclient", "internal/redisclient/slots", "internal/refusal", "internal/protocol"},
		"console":          {".", "messages", "internal/kinds", "internal/keyspace", "internal/inspect", "internal/printable"},
	}
	foreign := map[string][]string{
		"github.com/redis/rueidis": {
			"redisio", "internal/redisclient", "internal/hello", "internal/redisclient/slots",
			"internal/redisclient/pubsub", "internal/inspect", "internal/whereabouts", "actors", ".", "console",
		},
		"github.com/asynkron/protoactor-go": {
			"messages", "internal/host", "internal/mailbox", "internal/delivery", "internal/middleware",
			"internal/owners", "internal/request", "internal/shell", "internal/boottime", "internal/faultinject",
			"actors", ".",
		},
		"google.golang.org/protobuf": {"messages", "internal/request", "internal/records", "."},
		"go.opentelemetry.io/otel":   {"internal/observe", "internal/request", "actors", ".", "console"},
	}
	for dir, allowed := range may {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no Go files (%v)", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if rest, ours := strings.CutPrefix(path+"/", module+"/"); ours {
					inside := filepath.Clean(rest)
					if !slices.Contains(allowed, inside) {
						t.Errorf("%s imports %s; package %s may import only %v of this module", file, inside, dir, allowed)
					}
					if may[inside] == nil {
						t.Errorf("%s imports %s, of which this table does not say what it may import", file, inside)
					}
				}
				for prefix, users := range foreign {
					if strings.HasPrefix(path, prefix) && !slices.Contains(users, dir) {
						t.Errorf("%s imports %s, which only %v may", file, path, users)
					}
				}
			}
		}
	}
}

// Only redisio, hello, the packages of redisclient and inspect send commands over rueidis. The other packages of the library
// name the types of a client and of its options, which users pass on.
func TestRueidis_IsUsedByFewPackages(t *testing.T) {
	use := regexp.MustCompile(`\brueidis\.(\w+)`)
	types := []string{"Client", "ClientOption", "SentinelOption", "ClientModeCluster"}
	others := regexp.MustCompile(
		`_test\.go$|^(?:redisio|internal/hello|internal/redisclient|internal/inspect|internal/testing|tests|bench|cmd|examples|grains|interop|robustness|lockkeepertest)/`,
	)
	for name, source := range read(t, ".go") {
		if others.MatchString(name) {
			continue
		}
		for line := range strings.Lines(source) {
			code, _, _ := strings.Cut(line, "//")
			for _, m := range use.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(types, m[1]) {
					t.Errorf("%s uses rueidis.%s", name, m[1])
				}
			}
		}
	}
}

// The enumerations of package messages have the same numbers as the types from which they are converted.
func TestEnumerations_HaveEqualNumbers(t *testing.T) {
	reasons := []messages.Reason{
		machine.Invalid: messages.Reason_REASON_INVALID, machine.Held: messages.Reason_REASON_HELD, machine.TimedOut: messages.Reason_REASON_TIMED_OUT,
		machine.CancelledByRequest: messages.Reason_REASON_CANCELLED, machine.QueueFull: messages.Reason_REASON_QUEUE_FULL, machine.Closed: messages.Reason_REASON_CLOSED,
		machine.Unavailable: messages.Reason_REASON_UNAVAILABLE, machine.Rejected: messages.Reason_REASON_REJECTED, machine.Crashed: messages.Reason_REASON_CRASHED,
		machine.NotHeld: messages.Reason_REASON_NOT_HELD, machine.Lost: messages.Reason_REASON_LOST, machine.Expired: messages.Reason_REASON_EXPIRED,
		machine.Gone: messages.Reason_REASON_GONE, machine.Taken: messages.Reason_REASON_TAKEN, machine.Forced: messages.Reason_REASON_FORCED,
		machine.MaxHold: messages.Reason_REASON_MAX_HOLD, machine.Reentry: messages.Reason_REASON_REENTRY, machine.NotReplicated: messages.Reason_REASON_NOT_REPLICATED,
		machine.NoPermits: messages.Reason_REASON_NO_PERMITS,
	}
	modes := []messages.Mode{machine.Exclusive: messages.Mode_MODE_EXCLUSIVE, machine.Shared: messages.Mode_MODE_SHARED}
	same(t, reasons, len(messages.Reason_name))
	if int(machine.NumReasons) != len(messages.Reason_name) {
		t.Errorf("there are %d reasons, and %d in package messages", machine.NumReasons, len(messages.Reason_name))
	}
	same(t, modes, len(messages.Mode_name))
}

// Package inspect names the kinds that it recognizes by the words of the table of kinds. A lock of another kind is shown as a
// plain one; there is no other synchronizer.
func TestInspect_NamesTheKinds(t *testing.T) {
	locks, synchronizers := kinds.Words()
	for _, kind := range []string{inspect.KindPlain, inspect.KindFenced, inspect.KindFair, inspect.KindReadWrite} {
		if !slices.Contains(locks, kind) {
			t.Errorf("the locks are %v, and inspect knows %v", locks, kind)
		}
	}
	if want := []string{inspect.KindExpirableSemaphore, inspect.KindSemaphore, inspect.KindLatch}; !slices.Equal(synchronizers, want) {
		t.Errorf("the synchronizers are %v, and inspect knows %v", synchronizers, want)
	}
}

// same expects n numbers, each equal to its index.
func same[E ~int32](t *testing.T, all []E, n int) {
	t.Helper()
	if len(all) != n {
		t.Errorf("%T: %d of %d have another number", all, len(all), n)
	}
	for i, e := range all {
		if int(e) != i {
			t.Errorf("%T: %v is %d in the other type, and %d in package messages", all, e, i, e)
		}
	}
}

// The packages of internal/testing are for tests and for the programs that test: no user's binary contains them.
func TestTesting_IsForTests(t *testing.T) {
	testers := regexp.MustCompile(`_test\.go$|^(?:internal/testing|tests|bench|interop|robustness)/`)
	for name, source := range read(t, ".go") {
		if !testers.MatchString(name) && strings.Contains(source, "lockkeeper/internal/testing/") {
			t.Errorf("%s imports a package of internal/testing", name)
		}
	}
}
