package layout_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// sources returns the files that people write, by path.
func sources(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := read(t, endings...)
	maps.DeleteFunc(files, func(name, _ string) bool {
		return strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "interop/java/target/") || // made by builds
			strings.Contains(name, "testdata/") || strings.HasSuffix(name, ".pb.go")
	})
	if len(files) < 10 {
		t.Fatalf("there are %d files with the endings %v", len(files), endings)
	}
	return files
}

// Code and documents name what acts: a process, a waiter, a caller. Pronouns for people in general hide it.
func TestWords_NameWhatActs(t *testing.T) {
	pronoun := regexp.MustCompile(`(?:no|some|any|every)body|\b(?:some|any|every)one\b|\bwho(?:m|so)?ever\b|\bstrange(?:r|rs)\b` +
		`|\bwhatever (?:is|are|was|were|has|have|had|can|may|must|will|reads|sends|needs|wants|waits)\b`)
	unclear := regexp.MustCompile(`\btakes? note\b|\b(?:all|those) who waits?\b|\bwho waits?\b|\bpermits that expire\b|\bthe works of\b|\bstands? back\b|\b(?:is|are|be) told\b` +
		// The glossary has other words: unanswered, linger, and handed off.
		`|\bunacked\b|\blocks? that stays?\b|\b(?:leases?|locks?|permits?) (?:is|are|was|were) (?:handed|passed) on\b`)
	// In prose: write the noun again, and "no longer".
	indirect := regexp.MustCompile(`\b(?:that|those) of\b|\b(?:any|no) more\b`)
	// In prose: next to, alongside, with, among or besides; usually; "for example while"; a path, or how.
	vague := regexp.MustCompile(`\bbeside\b|\bmostly\b|\bas while\b|\bthe way of\b`)
	// parts are looked for first, since this is faster than the expressions.
	parts := []string{
		"body", "one", "ever", "strange", "note", "who", "expire", "works", "stand", "told", "unacked", "that stay", "ed on",
		"that of", "those of", "any more", "no more", "beside", "mostly", "as while", "the way of",
	}
	exempt := []string{ // from unclear: folders and files
		"tests/layout/writing_test.go", "tests/locks/spawn_test.go", "tests/semaphore/asleep_test.go", "tests/topology/replicas_permits_test.go",
	}
	may := map[string]string{ // by file: the word that it may have
		"tests/layout/writing_test.go": "stranger",
	}
	for name, text := range sources(t, ".go", ".lua", ".proto", ".md", ".sh", ".yml", ".java", "go.work", "Makefile", ".ci/run") {
		for i, line := range strings.Split(strings.ToLower(text), "\n") {
			if !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) }) {
				continue
			}
			for _, word := range pronoun.FindAllString(line, -1) {
				if may[name] != word {
					t.Errorf("%s:%d: %q: name the process, key, request or person that is meant", name, i+1, word)
				}
			}
			isIn := func(paths []string) bool {
				return slices.ContainsFunc(paths, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
			}
			if phrase := indirect.FindString(prose(name, line)); phrase != "" && name != "tests/layout/writing_test.go" {
				t.Errorf("%s:%d: %q: write the noun again, or \"no longer\"", name, i+1, phrase)
			}
			if word := vague.FindString(prose(name, line)); word != "" && name != "tests/layout/writing_test.go" {
				t.Errorf("%s:%d: %q: say where, when or how in a plainer word", name, i+1, word)
			}
			if isIn(exempt) {
				continue
			}
			for _, phrase := range unclear.FindAllString(line, -1) {
				t.Errorf("%s:%d: %q: say it in plain words, with the request, the expirable semaphore or the function that acts", name, i+1, phrase)
			}
		}
	}
}

var goComment = regexp.MustCompile(`(?:^|\s)//(.*)`)

// prose returns the part of a line that is prose: a comment of Go, or a line of a script or a document.
func prose(name, line string) string {
	switch filepath.Ext(name) {
	case ".go":
		if m := goComment.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	case ".lua", ".md":
		return line
	}
	return ""
}

// A test has the name of its subject and of a rule: TestSubject_Rule. The others run many cases, each with its own rule.
func TestNames_StateRules(t *testing.T) {
	others := map[string]string{
		"TestMain":    "starts and ends the tests of a package",
		"TestExplore": "the rules are those of its world", "TestWorlds": "likewise", "TestRandomWorlds": "likewise",
		"TestModel":   "the rules are those of Redis",
		"TestScripts": "a rule for each row", "TestPermits": "likewise",
		"TestDecisions":   "a rule for each script in testdata",
		"TestConformance": "a rule for each behaviour", "TestInterop": "likewise",
		"TestExamples": "the rules are what the examples print",
		"TestNemeses":  "the rules are those of its judge", "TestControls": "a rule for each control",
	}
	function, rule := regexp.MustCompile(`(?m)^func (Test\w*)\(`), regexp.MustCompile(`^Test[A-Z]\w*_[A-Z]\w*$`)
	for name, source := range read(t, "_test.go") {
		for _, m := range function.FindAllStringSubmatch(source, -1) {
			if !rule.MatchString(m[1]) && others[m[1]] == "" {
				t.Errorf("%s: %s does not say what must hold; name it TestSubject_Rule", name, m[1])
			}
		}
	}
}

// A failure says in words what is wrong, or has the error that does.
func TestFailures_SayWhatIsWrong(t *testing.T) {
	wordless := regexp.MustCompile(`\bt\.(?:Error|Fatal)(?:f\("(?:%[-+#]*\w[^\w%"]*)+", .*|\([\w.]+)\)$`)
	explained := regexp.MustCompile(`\b(?:err|fault|broken)\b|Err\b`)
	for name, source := range read(t, "_test.go") {
		for i, line := range strings.Split(source, "\n") {
			if failure := wordless.FindString(line); failure != "" && !explained.MatchString(failure) {
				t.Errorf("%s:%d: what is wrong? %s", name, i+1, failure)
			}
		}
	}
}

// No line of a document is longer than 120 characters, without the targets of links: tables and code are exempt.
func TestDocs_HaveShortLines(t *testing.T) {
	target := regexp.MustCompile(`\]\([^)]*\)`)
	for name, text := range sources(t, ".md") {
		code := false
		for i, line := range strings.Split(text, "\n") {
			switch {
			case strings.HasPrefix(strings.TrimSpace(line), "```"):
				code = !code
			case code, strings.HasPrefix(line, "|"), strings.HasPrefix(line, "    "):
			default:
				if n := utf8.RuneCountInString(target.ReplaceAllString(line, "]")); n > 120 {
					t.Errorf("%s:%d has %d characters", name, i+1, n)
				}
			}
		}
	}
}

// No line of code is longer than 140 characters, and none of the tests, whose tables are read in rows, than 180.
func TestCode_HasShortLines(t *testing.T) {
	for name, text := range sources(t, ".go") {
		most := 140
		if strings.HasSuffix(name, "_test.go") {
			most = 180
		}
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > most {
				t.Errorf("%s:%d has %d characters, and may have %d", name, i+1, n, most)
			}
		}
	}
}

// A file has one concept, and is read in one go.
func TestCode_IsInShortFiles(t *testing.T) {
	for name, text := range sources(t, ".go") {
		if lines := strings.Count(text, "\n"); lines > 425 || lines > 400 && strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
}

// The table of folders in CONTRIBUTING.md has each folder of the root, and of internal.
func TestContributing_NamesEveryFolder(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllString(read(t, "CONTRIBUTING.md")["CONTRIBUTING.md"], -1)
	table := strings.Join(rows, "")
	for _, parent := range []string{"", "internal/"} {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := parent + entry.Name(); entry.IsDir() && name != ".git" && name != "bin" && !strings.Contains(table, "`"+name+"/") {
				t.Errorf("CONTRIBUTING.md does not have the folder %s", name)
			}
		}
	}
}

// Package actors grew after it had been made small. It may shrink, and these bounds with it. Comments are not counted.
func TestActors_StaySmall(t *testing.T) {
	files, switches, lines := 0, 0, 0
	for name, text := range sources(t, ".go") {
		if strings.HasPrefix(name, "actors/") && !strings.HasSuffix(name, "_test.go") {
			files, switches = files+1, switches+strings.Count(text, ".(type) {")
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(strings.TrimSpace(line), "//") {
					lines++
				}
			}
		}
	}
	if files > 14 || switches > 6 || lines > 2205 {
		t.Errorf("actors has %d files, %d type switches and %d lines without comments; 14, 6 and 2205 are allowed", files, switches, lines)
	}
}
