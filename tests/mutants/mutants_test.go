package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// changes applies each site, and returns the changed lines.
func changes(t *testing.T, src string, found []site) (all []string) {
	t.Helper()
	for _, s := range found {
		after := strings.Split(string(s.apply([]byte(src))), "\n")
		if len(after) != strings.Count(src, "\n")+1 {
			t.Errorf("%s: %d lines", s, len(after))
			continue
		}
		all = append(all, s.kind+": "+strings.TrimSpace(after[s.line-1]))
	}
	return all
}

func TestSites_FindsMutations(t *testing.T) {
	for _, test := range []struct {
		find func(string) ([]site, error)
		src  string
		want []string
	}{
		{goSites, "package p\nfunc f(a int) bool {\n if a == b && ok {\n  a += 2\n }\n switch {\n case a > b:\n  g()\n }\n return true\n}\n", []string{
			"negate: if !(a == b && ok) {", "swap: if a == b || ok {", "swap: if a != b && ok {",
			"swap: a -= 2", "constant: a += 3", "swap: case a >= b:", "constant: return false",
			"delete: ", "delete: ", "delete: ", "delete: ", "delete: ", "delete: ", // if and what is in it, switch, case and what is in it, return
		}},
		{luaSites, "-- if a then\nif n == -2 or free then -- and more\n  return {0, n}\nend\nlocal x = tonumber(ARGV[1]) + 1\nredis.call('SET', k, '0', 'PX', x)\n", []string{
			"negate: if not (n == -2 or free) then -- and more", "swap: if n ~= -2 or free then -- and more",
			"swap: if n == -2 and free then -- and more", "constant: if n == -3 or free then -- and more",
			"constant: return {1, n}", "delete: ", "swap: local x = tonumber(ARGV[1]) - 1", "constant: local x = tonumber(ARGV[1]) + 2",
			"constant: redis.call('SET', k, '1', 'PX', x)", "ttl: redis.call('SET', k, '0', 'PX', 2 * (x))", "delete: ",
		}},
	} {
		found, err := test.find(test.src)
		if err != nil {
			t.Fatal(err)
		}
		got := changes(t, test.src, found)
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(test.want))) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
	}
}

// The tests run on each mutant, of Go or of an embedded text, and the module does not change.
func TestMutate_ReportsOutcomes(t *testing.T) {
	t.Chdir(t.TempDir())
	sample := map[string]string{
		"go.mod":   "module sample\n\ngo 1.25\n",
		"p.go":     "package p\n\nimport _ \"embed\"\n\n//go:embed text.lua\nvar text string\n\nvar n = 4\n",
		"text.lua": "return 1\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestText(t *testing.T) {\n" +
			"\tfor n > 9 {\n\t}\n\tif n < 4 || text != \"return 1\\n\" {\n\t\tt.Fail()\n\t}\n}\n",
	}
	for name, text := range sample {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	limits, err := clean(t.Context(), []string{"."})
	if err != nil || limits[0] < 10*time.Second {
		t.Fatal(limits, err)
	}
	for _, test := range []struct {
		file, old, new string
		want           outcome
		says           string
	}{
		{file: "p.go", old: "4", new: "3", want: killed, says: "--- FAIL: TestText"},
		{file: "p.go", old: "4", new: "5", want: survived},
		{file: "p.go", old: "4", new: "m", want: notBuilt, says: "undefined: m"},
		{file: "p.go", old: "4", new: "10", want: killed, says: "test timed out after 1s"},
		{file: "text.lua", old: "1", new: "2", want: killed, says: "--- FAIL: TestText"},
	} {
		s := site{file: test.file, old: test.old, new: test.new, start: strings.Index(sample[test.file], test.old)}
		got, output, err := mutate(t.Context(), s, []string{"."}, []time.Duration{time.Second})
		if err != nil || got != test.want || !strings.Contains(output, test.says) {
			t.Errorf("%v: %s (%v), want %s\n%s", s, got, err, test.want, output)
		}
	}
	for name, want := range sample {
		if text, err := os.ReadFile(filepath.Clean(name)); err != nil || string(text) != want {
			t.Errorf("%s was changed: %q (%v)", name, text, err)
		}
	}
	if _, err := clean(t.Context(), []string{". -unknown"}); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("tests that fail without a mutation: %v", err)
	}
}
