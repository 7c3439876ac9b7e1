package layout_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// read returns the contents of the files with these endings, by their path from the root.
func read(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		}
		if entry.IsDir() || !slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(path, ending) }) {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The documents name tests of each promise: each test exists, in the named file, and so does each script of TestDecisions.
func TestDocs_NameOnlyExistingTests(t *testing.T) {
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	files := map[string]string{} // by test: the paths of its files, each followed by a space
	for name, source := range read(t, "_test.go") {
		for _, m := range function.FindAllStringSubmatch(source, -1) {
			files[m[1]] += name + " "
		}
	}
	scripts := map[string]bool{}
	for name, text := range read(t, ".txt") {
		if dir, file := filepath.Split(name); dir == "internal/lock/testdata/" {
			group := strings.TrimSuffix(file, ".txt")
			scripts[group] = true
			for _, m := range regexp.MustCompile(`(?m)^# (.*)$`).FindAllStringSubmatch(text, -1) {
				scripts[group+"/"+strings.ReplaceAll(m[1], " ", "_")] = true
			}
		}
	}
	for doc, text := range read(t, ".md") {
		names := regexp.MustCompile(`(?:([\w/]+_test\.go): )?\b((?:Test|Fuzz)[A-Z]\w*)(…?)(?:/([\w/'-]+)(?: \(\*(.+?)\*\))?)?`).FindAllStringSubmatch(text, -1)
		if (doc == "docs/track-record.md" || strings.HasSuffix(doc, "BEHAVIOURS.md")) && len(names) < 20 {
			t.Errorf("%s names %d tests", doc, len(names))
		}
		for _, m := range names {
			file, name, more := m[1], m[2], m[3] != ""
			if !more && (files[name] == "" || !strings.Contains(" "+files[name], " "+file)) {
				t.Errorf("%s names %s %s, which is in %q", doc, file, name, files[name])
			}
			script := m[4]
			if m[5] != "" {
				script += "/" + strings.ReplaceAll(m[5], " ", "_")
			}
			if name == "TestDecisions" && script != "" && !scripts[script] {
				t.Errorf("%s names TestDecisions/%s, which is not in testdata", doc, script)
			}
		}
	}
}

// Every path in a document exists: in backquotes, in a link, and in a command that runs or tests a package.
func TestDocs_NameOnlyExistingPaths(t *testing.T) {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	quoted := regexp.MustCompile("`([\\w./-]*(?:/|\\.(?:go|lua|md|proto|sh))[\\w./-]*)`")
	linked := regexp.MustCompile(`\]\(([^)#:]+)[)#]`)
	run := regexp.MustCompile(`go (?:run|test|doc)[^|` + "`" + `\n]* (\./[\w/]+)`)
	found := 0
	for doc, text := range read(t, ".md") {
		for _, paths := range []*regexp.Regexp{quoted, linked, run} {
			for _, m := range paths.FindAllStringSubmatch(text, -1) {
				if strings.HasPrefix(m[1], "Test") {
					continue // the subtest of a test
				}
				found++
				if fromDoc := filepath.Join(filepath.Dir(doc), m[1]); !exists(fromDoc) && (paths == linked || !exists(m[1])) {
					t.Errorf("%s names %s, which does not exist", doc, m[1])
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("the documents name %d paths", found)
	}
}

// The code uses each term of the glossary: in one piece, with underscores, or in camel case.
func TestGlossary_TermsAreUsedInTheCode(t *testing.T) {
	var code strings.Builder
	for name, source := range read(t, ".go", ".lua", ".proto") {
		if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "tests/") {
			code.WriteString(strings.ToLower(source))
		}
	}
	glossary := read(t, "glossary.md")["docs/glossary.md"]
	terms := regexp.MustCompile(`(?m)^\| \*\*(.*)\*\* \|`).FindAllStringSubmatch(glossary, -1)
	if len(terms) < 30 {
		t.Fatalf("the glossary has %d terms", len(terms))
	}
	for _, m := range terms {
		var pieces []string
		for _, word := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ' ' || r == '-' }) {
			pieces = append(pieces, regexp.QuoteMeta(word))
		}
		if !regexp.MustCompile(strings.Join(pieces, `[ _-]?`)).MatchString(code.String()) {
			t.Errorf("no code has the term %q", m[1])
		}
	}
}

// docs/operate.md has a heading for each alert, which the alert names, and each warning and error that is logged.
func TestRunbook_CoversAlertsAndLogs(t *testing.T) {
	runbook := read(t, "operate.md")["docs/operate.md"]
	rules := read(t, "alerts.yml")["docs/monitoring/alerts.yml"]
	lines := 0
	logged := regexp.MustCompile(`(?:\.Warn\(|\.Error\(|LevelWarn, )"([^":\n]+)`)
	for name, source := range read(t, ".go") {
		within := func(dir string) bool { return strings.HasPrefix(name, dir) }
		if slices.ContainsFunc([]string{"actors/", "internal/host/", "internal/observe/"}, within) && !strings.HasSuffix(name, "_test.go") {
			for _, m := range logged.FindAllStringSubmatch(source, -1) {
				if lines++; !strings.Contains(runbook, m[1]) && !strings.Contains(m[1], "panic") && !strings.HasPrefix(m[1], "Redis refuses") {
					t.Errorf("%s logs %q, which docs/operate.md does not have", name, m[1])
				}
			}
		}
	}
	if lines < 15 {
		t.Errorf("there are %d log lines", lines)
	}
	const page = "runbook_url: https://github.com/lockkeeper-go/lockkeeper/blob/main/docs/operate.md#"
	for _, alert := range strings.Split(rules, "- alert: ")[1:] {
		name, rest, _ := strings.Cut(alert, "\n")
		if !strings.Contains(runbook, "\n### "+name+"\n") || !strings.Contains(rest, page+strings.ToLower(name)+"\n") {
			t.Errorf("docs/operate.md has no heading %s, or the alert does not name it", name)
		}
	}
}
