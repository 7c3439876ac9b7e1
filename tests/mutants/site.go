package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A site is a range of a file, and its replacement in a mutant.
type site struct {
	file, kind string
	line       int
	text       string // the line of the file
	start      int    // the offset of old in the file
	old, new   string
}

// in returns the site of a mutation that replaces src[start:end].
func in(src, kind string, start, end int, replacement string) site {
	begin := 1 + strings.LastIndexByte(src[:start], '\n')
	text, _, _ := strings.Cut(src[begin:], "\n")
	return site{
		kind: kind, line: 1 + strings.Count(src[:start], "\n"), text: strings.TrimSpace(text),
		start: start, old: src[start:end], new: replacement,
	}
}

// apply returns the source of the mutant. Where it has fewer lines, they are added again, so that the tests report
// the lines of the original.
func (s site) apply(src []byte) []byte {
	lines := strings.Repeat("\n", max(0, strings.Count(s.old, "\n")-strings.Count(s.new, "\n")))
	return slices.Concat(src[:s.start], []byte(s.new+lines), src[s.start+len(s.old):])
}

func (s site) String() string {
	return fmt.Sprintf("%s:%d: %s: %.60q -> %.60q in: %s", s.file, s.line, s.kind, s.old, s.new, s.text)
}

// sites returns all sites in a package's files.
func sites(pkg string) (all []site, err error) {
	find := luaSites
	files, err := filepath.Glob(filepath.Join(pkg, "*.lua"))
	common, _ := filepath.Glob(filepath.Join(pkg, "common", "*.lua")) // the pattern is as valid as the first
	files = append(files, common...)
	if err == nil && len(files) == 0 {
		find = goSites
		files, err = filepath.Glob(filepath.Join(pkg, "*.go"))
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := find(string(src))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, s := range found {
			s.file = file
			all = append(all, s)
		}
	}
	return all, nil
}
