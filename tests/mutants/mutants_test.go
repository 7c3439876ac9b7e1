package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// changes applies each site, and tells what the lines that differ have become.
func changes(t *testing.T, src string, found []site) []string {
	t.Helper()
	before := strings.Split(src, "\n")
	var all []string
	for _, s := range found {
		after := strings.Split(string(s.apply([]byte(src))), "\n")
		if len(after) != len(before) {
			t.Errorf("%s: %d lines, want %d", &s, len(after), len(before))
			continue
		}
		differ := s.Kind + ":"
		for i := range after {
			if after[i] != before[i] {
				differ += " " + strings.Join(strings.Fields(after[i]), " ")
			}
		}
		all = append(all, strings.Join(strings.Fields(differ), " "))
	}
	slices.Sort(all)
	return all
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(want)
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("not wanted: %s", g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("missing: %s", w)
		}
	}
	if !t.Failed() && !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestGoSites(t *testing.T) {
	const src = `package p

import "fmt"

func (x *T) f(a, b int) {
	if a == b {
		x.n = 1
		return
	}
	for i := 0; i < b; i++ {
		x.n += 2
	}
	switch {
	case a > b && x.ok:
		fmt.Println(a)
	default:
		y := a - b
		_ = y
	}
}

func g(a int) bool { return a != 8 || true }
`
	found, err := goSites([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, changes(t, src, found), []string{
		"return: func (x *T) f(a, b int) { return ;",
		"negate: if !(a == b) {",
		"delete: }",
		"delete:", "constant: x.n = 2", "delete:",
		"constant: for i := 1; i < b; i++ {", "boundary: for i := 0; i <= b; i++ {", "arithmetic: for i := 0; i < b; i-- {",
		"arithmetic: x.n -= 2", "constant: x.n += 3", "delete:",
		"negate: case !(a > b && x.ok):", "boundary: case a >= b && x.ok:", "logic: case a > b || x.ok:", "case:",
		"delete:", "arithmetic: y := a + b", "delete:",
		"return: func g(a int) bool { return true; return a != 8 || true }",
		"return: func g(a int) bool { return false; return a != 8 || true }",
		"delete: func g(a int) bool { }",
		"negate: func g(a int) bool { return a == 8 || true }",
		"logic: func g(a int) bool { return a != 8 && true }",
		"constant: func g(a int) bool { return a != 9 || true }",
		"constant: func g(a int) bool { return a != 8 || false }",
	})
}

func TestLuaSites(t *testing.T) {
	const src = `-- if a then b
local n = tonumber(ARGV[1] or 7) -- and more
if n == -2 then
  return {0, n}
elseif not free and (n > 0 or n ~= 5) then
  redis.call('PEXPIRE', KEYS[1], math.max(n, 3))
end
h[#h + 1] = redis.call('GET', KEYS[1]) == '0'
  and free
local x = a and b or c
redis.call('SET', KEYS[1],
  x)
`
	found, err := luaSites([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, changes(t, src, found), []string{
		"logic: local n = tonumber(ARGV[1] ) -- and more", "logic: local n = tonumber( 7) -- and more", "constant: local n = tonumber(ARGV[1] or 8) -- and more",
		"negate: if not (n == -2) then", "constant: if n == -3 then",
		"delete:", "constant: return {1, n}",
		"negate: elseif not (not free and (n > 0 or n ~= 5)) then",
		"logic: elseif (n > 0 or n ~= 5) then", "logic: elseif not free then",
		"logic: elseif not free and (n > 0 ) then", "logic: elseif not free and ( n ~= 5) then",
		"boundary: elseif not free and (n >= 0 or n ~= 5) then", "negate: elseif not free and (n > 0 or n == 5) then",
		"constant: elseif not free and (n > 1 or n ~= 5) then", "constant: elseif not free and (n > 0 or n ~= 6) then",
		"delete:", "ttl: redis.call('PEXPIRE', KEYS[1], 2 * (math.max(n, 3)))", "constant: redis.call('PEXPIRE', KEYS[1], math.max(n, 4))",
		"delete:", "arithmetic: h[#h - 1] = redis.call('GET', KEYS[1]) == '0'", "constant: h[#h + 2] = redis.call('GET', KEYS[1]) == '0'",
		"negate: h[#h + 1] = redis.call('GET', KEYS[1]) ~= '0'", "constant: h[#h + 1] = redis.call('GET', KEYS[1]) == '1'",
		"logic:", "logic: h[#h + 1] = free",
		"logic: local x = b or c", "logic: local x = a or c", "logic: local x = a and b", "logic: local x = c",
		"delete:",
	})
}

func TestSampleIsSpread(t *testing.T) {
	var all []site
	for file, n := range map[string]int{"a": 60, "b": 30, "c": 10} {
		for i := range n {
			all = append(all, site{File: file, Line: i})
		}
	}
	slices.SortFunc(all, func(a, b site) int { return strings.Compare(a.File, b.File) })
	first := shuffle(slices.Clone(all), 3)
	of := map[string]int{}
	for _, s := range first[:20] {
		of[s.File]++
	}
	for file, want := range map[string]int{"a": 12, "b": 6, "c": 2} {
		if of[file] < want-1 || of[file] > want+1 {
			t.Errorf("%d of the first 20 are in file %s, want %d", of[file], file, want)
		}
	}
	if !reflect.DeepEqual(first, shuffle(slices.Clone(all), 3)) {
		t.Error("the same seed gave another order")
	}
	if reflect.DeepEqual(first, shuffle(slices.Clone(all), 4)) {
		t.Error("another seed gave the same order")
	}
}

func TestJudge(t *testing.T) {
	for output, want := range map[string]outcome{
		"--- FAIL: TestX (0.00s)\nFAIL":               killed,
		"panic: boom":                                 killed,
		"panic: test timed out after 5s":              timedOut,
		"FAIL\tx [build failed]":                      notBuilt,
		"--- FAIL: TestX\n  Error compiling script 1": notBuilt,
	} {
		if got, _ := judge(output); got != want {
			t.Errorf("%q: %s, want %s", output, got, want)
		}
	}
}

// sample is a module whose tests hold the length of a name, and not that of its text.
var sample = map[string]string{
	"go.mod": "module sample\n\ngo 1.25\n",
	"p/p.go": `package p

import _ "embed"

//go:embed text.lua
var text string

func length(s string) int {
	n := 0
	for range s {
		n++
	}
	if len(text) < 4 {
		n = 0
	}
	return n + 0
}
`,
	"p/text.lua": "return 1\nreturn 2\n",
	"p/p_test.go": `package p

import (
	"strings"
	"testing"
)

func TestLength(t *testing.T) {
	if length("four") != 4 {
		t.Fail()
	}
}

func TestText(t *testing.T) {
	if !strings.Contains(text, "return 1") {
		t.Fail()
	}
}
`,
}

// The tests of a module run on each mutant, whether Go or an embedded text, and the module
// stays as it is.
func TestMutate(t *testing.T) {
	module := t.TempDir()
	for name, text := range sample {
		file := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &runner{module: module, work: t.TempDir(), commands: []command{{arguments: []string{"./p"}}}}
	if err := r.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.commands[0].clean <= 0 || r.commands[0].limit() < 4*r.commands[0].clean {
		t.Errorf("a clean run took %v, a mutant may take %v", r.commands[0].clean, r.commands[0].limit())
	}
	at := func(file, old, new string) site {
		t.Helper()
		before, _, found := strings.Cut(sample[file], old)
		if !found {
			t.Fatalf("%s: no %q", file, old)
		}
		return site{File: file, Old: old, New: new, start: len(before)}
	}
	for _, c := range []struct {
		site site
		want outcome
		by   string
	}{
		{at("p/p.go", "n++", "n--"), killed, "TestLength"},
		{at("p/p.go", "< 4", "<= 4"), survived, ""},
		{at("p/p.go", "n++", "m++"), notBuilt, ""},
		{at("p/p.go", "return n", "for {}; return n"), timedOut, ""},
		{at("p/text.lua", "return 1", "return 2"), killed, "TestText"},
		{at("p/text.lua", "return 2", "return 3"), survived, ""},
	} {
		if c.want == timedOut {
			r.commands[0].clean = -9 * time.Second / 4 // the limit is a second
		}
		got, err := r.mutate(t.Context(), c.site)
		if err != nil || got.Outcome != c.want || got.By != c.by {
			t.Errorf("%s: %s by %q (%v), want %s by %q", &c.site, got.Outcome, got.By, err, c.want, c.by)
		}
		r.commands[0].clean = time.Second
	}
	for name, want := range sample {
		if text, err := os.ReadFile(filepath.Join(module, name)); err != nil || string(text) != want {
			t.Errorf("%s was changed: %q (%v)", name, text, err)
		}
	}

	r.commands[0].arguments = []string{"./p", "-run=TestLength", "-unknown"}
	if err := r.clean(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("tests that fail as it is: %v", err)
	}
}
