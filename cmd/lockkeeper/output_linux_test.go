package main

import (
	"os"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// For every subcommand, output that cannot be written is an error, which is printed once.
func TestOutput_ThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "HSET", "held", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57", "1")
	server.Do(t, "HSET", "freed", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57", "1")
	server.Do(t, "SET", "number", "3")
	full := must(os.OpenFile("/dev/full", os.O_WRONLY, 0))
	t.Cleanup(func() { check(full.Close()) })
	lines := []string{
		"help", "run -h", "version", "completion bash", "ls", "ls --json", "ls -systems", "inspect held", "inspect --json held", "inspect number",
		"inspect --json number", "watch held", "watch --json held", "release --force freed", "release --force --json held", "doctor", "doctor --json", "bench -for 100ms",
	}
	for _, c := range subcommands() {
		lines = append(lines, "help "+c.name)
		if c.name != "version" && c.name != "completion" {
			lines = append(lines, c.name+" -h")
		}
	}
	for _, line := range lines {
		if line == "ls -systems" {
			server.Do(t, "HSET", "held", "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57", "1")
		}
		var errs strings.Builder
		code := dispatch(strings.Fields(line), environment{variables: []string{"REDIS_URL=" + server.URL()}, stdout: full, stderr: &errs})
		if code != exitNo || strings.Count(errs.String(), "no space left on device") != 1 {
			t.Errorf("%s: exit code %d: %s", line, code, &errs)
		}
	}
	var errs strings.Builder // the command itself prints the error
	code := dispatch([]string{"run", "-lock", "x", "--", "echo", "printed"}, environment{variables: []string{"REDIS_URL=" + server.URL()}, stdout: full, stderr: &errs})
	if code != exitNo || !strings.Contains(errs.String(), "echo") {
		t.Errorf("run: exit code %d: %s", code, &errs)
	}
}

// A name that is not UTF-8 is printed without loss, and other names unchanged.
func TestNames_ThatAreNotTextArePrintedWithoutLoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const client, name, text = "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88", "a\xff\x00b", "日本\u202e"
	for _, name := range []string{name, text} {
		server.Do(t, "HSET", name, client+":57", "1")
		server.Do(t, "SET", name+"3", "3")
		server.Do(t, "ZADD", "{"+name+"3}:timeout", "922337203685477", "abcdefghijklmnop")
	}
	type named struct {
		Name      string
		NameBytes []byte `json:"name_base64"`
	}
	expect := func(line []string, want ...string) {
		t.Helper()
		got := map[string]bool{}
		for _, n := range read[named](t, server, 0, line...) {
			if n.NameBytes != nil {
				n.Name = string(n.NameBytes)
			} else if strings.Contains(n.Name, "\ufffd") {
				t.Errorf("%q lost the name %q", line, n.Name)
			}
			got[n.Name] = true
		}
		for _, name := range want {
			if !got[name] {
				t.Errorf("%q printed %v, want %q", line, got, name)
			}
		}
	}
	expect([]string{"ls", "--json"}, name, text, name+"3", text+"3")
	expect([]string{"inspect", "--json", name}, name)
	expect([]string{"inspect", "--json", text}, text)
	expect([]string{"inspect", "--json", name + "3"}, name+"3")
	o := watchOptions{access: access{environment: environment{stdout: &strings.Builder{}}, json: true}}
	check(o.printChanges([]inspect.Lock{{Name: name, NameBytes: []byte(name), Held: true}}, false))
	check(o.printChanges(nil, false))
	if printed := o.stdout.(*strings.Builder).String(); strings.Count(printed, `"name_base64":"Yf8AYg=="`) != 2 {
		t.Errorf("watch printed %s", printed)
	}
}
