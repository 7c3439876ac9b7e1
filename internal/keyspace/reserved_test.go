package keyspace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// All keys that a function of this package derives are reserved. Every such function is in one of these lists.
func TestReserved_HasEveryDerivedKey(t *testing.T) {
	t.Parallel()
	const client = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88"
	keys := map[string]func(name string) string{
		"Token": Token, "Queue": Queue, "Timeouts": Timeouts, "Taken": Taken, "WaitQueue": WaitQueue,
		"ReadWriteQueue": ReadWriteQueue, "WaitOrder": WaitOrder, "ReadWriteOrder": ReadWriteOrder,
		"Counted": Counted, "Whereabouts": Whereabouts, "Memory": Memory, "Systems": Systems,
		"Calls":  func(name string) string { return Calls(name) + ":" + client },
		"Holds":  func(name string) string { return Holds(name) + ":" + client + ":7:rwlock_timeout:1" },
		"System": func(name string) string { return System(name, SystemOf(client)) },
	}
	others := []string{
		"Channel", "ReadWriteChannel", "Waiters", "TurnChannel", "AskedChannel", "ShardTurnChannel", "PermitsChannel", "LatchChannel",
		"NamesIn", "SystemOf", "PermitSystemOf", "Slot", "KeysOf",
	}
	for _, function := range exported(t, "keys.go") {
		if keys[function] == nil && !slices.Contains(others, function) {
			t.Errorf("%s is in no list: is what it returns a key?", function)
		}
	}
	for _, name := range []string{"n", "a b:c", "a{b}c", "{a}:b", "{a", "}{", "ключ", "\x00{\n}", "lockkeeper_wait_queue:{n}", ""} {
		for function, derive := range keys {
			if key := derive(name); Reserved(key) == "" {
				t.Errorf("%q is not reserved, and %s returns it", key, function)
			}
		}
	}
	for _, key := range []string{
		"", "n", "{n}", "lockkeeper", "my:timeout", "n:timeout", "timeout", "{n}:timeouts", "lockkeeper_wait_queue", "lockkeeper_wait_queue:n", "a:lockkeeper_wait_queue:{n}",
		"redisson_lock_token:n", "lockkeeper_memory:n", "lockkeeper_systems", "{lockkeeper_systems", "n:rwlock_timeout:1", "{n}:rwlock_timeout",
	} {
		if holds := Reserved(key); holds != "" {
			t.Errorf("%q is reserved for %s", key, holds)
		}
	}
}

// Twin returns the name from which the same keys are derived.
func TestTwin_HasTheSameKeys(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"{a}": "a", "{a b:c}": "a b:c", "{a}}": "a}", "{a{b}": "", "{a}{b}": "", "{{a}}": "", "{}": "", "{": "", "}": "", "": "", "a": "", "{a}b": "", "{a": "", "a}": "",
	} {
		if got := Twin(name); got != want || got != "" && (Queue(got) != Queue(name) || Channel(got) != Channel(name)) {
			t.Errorf("the twin of %q is %q, want %q", name, got, want)
		}
	}
}

// exported lists the exported functions of a file.
func exported(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		if function, is := decl.(*ast.FuncDecl); is && function.Recv == nil && function.Name.IsExported() {
			names = append(names, function.Name.Name)
		}
	}
	return names
}
