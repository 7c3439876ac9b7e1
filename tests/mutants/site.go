package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A site is a place in a file and what a mutant has there instead.
type site struct {
	File  string `json:"file"` // relative to the module
	Line  int    `json:"line"`
	Kind  string `json:"kind"`
	Old   string `json:"old"`
	New   string `json:"new"`
	Text  string `json:"text"` // the line of the file
	start int    // the offset of Old in the file
}

// in returns the site of a mutation that replaces src[start:end].
func in(src []byte, kind string, start, end int, replacement string) site {
	line := src[bytes.LastIndexByte(src[:start], '\n')+1:]
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return site{
		Line: 1 + bytes.Count(src[:start], []byte("\n")),
		Kind: kind, Old: string(src[start:end]), New: replacement, start: start,
		Text: string(bytes.TrimSpace(line)),
	}
}

// apply returns the source of the mutant. Where it is shorter by lines, it gets them back,
// so that the tests report the lines of the original.
func (s *site) apply(src []byte) []byte {
	replacement := s.New + strings.Repeat("\n", max(0, strings.Count(s.Old, "\n")-strings.Count(s.New, "\n")))
	return slices.Concat(src[:s.start], []byte(replacement), src[s.start+len(s.Old):])
}

func (s *site) String() string {
	change := fmt.Sprintf("%s -> %s", brief(s.Old), brief(s.New))
	switch {
	case s.New == "":
		change = brief(s.Old)
	case s.Old == "":
		change = brief(s.New)
	}
	if !strings.Contains(s.Old, s.Text) {
		change += "  in: " + brief(s.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", s.File, s.Line, s.Kind, change)
}

// brief is a text on one line, cut when it is long.
func brief(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > 90 {
		return string(line[:90]) + " ..."
	}
	return string(line)
}

// sites returns all places of a package's files where there is something to mutate.
func sites(module, pkg string) ([]site, error) {
	find := luaSites
	files, err := filepath.Glob(filepath.Join(module, pkg, "*.lua"))
	if err == nil && len(files) == 0 {
		find = goSites
		files, err = filepath.Glob(filepath.Join(module, pkg, "*.go"))
	}
	if err != nil {
		return nil, err
	}
	var all []site
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := find(src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name, err := filepath.Rel(module, file)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].File = name
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing to mutate in %s of %s", pkg, module)
	}
	return all, nil
}

// shuffle brings the sites into the random order of a seed, such that any number of the
// first ones is spread over the files in proportion to the sites that they have.
func shuffle(all []site, seed uint64) []site {
	random := rand.New(rand.NewPCG(seed, 0))
	byFile := map[string][]site{}
	var files []string
	for _, s := range all {
		if byFile[s.File] == nil {
			files = append(files, s.File)
		}
		byFile[s.File] = append(byFile[s.File], s)
	}
	type placed struct {
		site
		at float64
	}
	var order []placed
	for _, file := range files {
		own := byFile[file]
		random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		offset := random.Float64()
		for i, s := range own {
			order = append(order, placed{s, (float64(i) + offset) / float64(len(own))})
		}
	}
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	shuffled := make([]site, len(order))
	for i, p := range order {
		shuffled[i] = p.site
	}
	return shuffled
}
