package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An element is one of the SVG.
type element struct {
	class, text string
	attributes  map[string]string
}

// elements reads an SVG, which must be well-formed.
func elements(t *testing.T, svg string) (all []element) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			e.class = e.attributes["class"]
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

func texts(all []element, class string) (texts []string) {
	for _, e := range all {
		if e.class == class {
			texts = append(texts, e.text)
		}
	}
	return texts
}

func TestChart(t *testing.T) {
	_, results := readSome(t)
	c := compare("s3", results)
	svg := c.chart()
	if again := compare("s3", slices.Clone(results)).chart(); again != svg {
		t.Error("the same results make another chart")
	}
	all := elements(t, svg)
	libs := []string{"lockkeeper", "raw", "rueidislock", "redsync"}
	if got := texts(all, "label"); !slices.Equal(got, append(slices.Clone(libs), libs...)) {
		t.Errorf("labels %q, and should be those of two panels", got)
	}
	if got := texts(all, "figure"); !slices.Equal(got, []string{"grants/s", "p99 wait, µs"}) {
		t.Errorf("figures %q", got)
	}
	if got := texts(all, "value")[:4]; !slices.Equal(got, []string{"60,000", "1,500", "2,000", "1,000"}) {
		t.Errorf("values %q", got)
	}
	var widths []float64
	var classes []string
	whiskers := 0
	for _, e := range all {
		if strings.HasPrefix(e.class, "bar ") {
			width, err := strconv.ParseFloat(e.attributes["width"], 64)
			if err != nil {
				t.Fatal(err)
			}
			widths, classes = append(widths, width), append(classes, e.class)
		}
		if e.class == "whisker" {
			whiskers++
			// From 20,000 to 90,000, which is the longest.
			if d := e.attributes["d"]; whiskers == 1 && !strings.HasSuffix(d, "H620.0m0 -4v8") {
				t.Errorf("whisker %q", d)
			}
		}
	}
	if !slices.Equal(classes[:4], []string{"bar ours", "bar limit", "bar peer", "bar peer"}) {
		t.Errorf("classes %q", classes)
	}
	if want := 60000.0 / 90000 * barRoom; widths[0] < want-0.1 || widths[0] > want+0.1 {
		t.Errorf("our bar is %v wide, and should be %v", widths[0], want)
	}
	if whiskers != 3 { // ours twice, and raw's grants: the others were measured once, or as zero
		t.Errorf("%d whiskers", whiskers)
	}
}

func TestChartOfVariants(t *testing.T) {
	_, results := readSome(t)
	for section, want := range map[string][]string{
		"s10-held": {"lockkeeper, 100", "lockkeeper, 1,000"},
		"s13":      {"lockkeeper, 5ms", "lockkeeper, 10ms"},
	} {
		all := elements(t, compare(section, results).chart())
		if got := texts(all, "label")[:2]; !slices.Equal(got, want) {
			t.Errorf("%s has the labels %q", section, got)
		}
	}
}

func TestPublish(t *testing.T) {
	file, _ := readSome(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	markers := func(name string) string {
		return "<!-- " + name + ": made by bench -charts -->\nold " + name + "\n<!-- end of " + name + " -->\n"
	}
	text := "# Page\n" + markers("machine") + markers("targets") + markers("s1") + markers("s3") + markers("s10-held") + markers("s13") + "The end.\n"
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	folder := filepath.Join(dir, "charts")
	if err := publish(file, folder, page); err != nil {
		t.Fatal(err)
	}
	once := read()
	for _, want := range []string{
		"# Page\n", "The end.\n", "old s1", "![s3: 64 goroutines on one key](charts/s3.svg)\n",
		"| lockkeeper | 60,000 |", "    go run -C bench . -scenario s3 -rounds 3 -seconds 2\n", "median 5.5, from 1.0 to 10.0",
	} {
		if !strings.Contains(once, want) {
			t.Errorf("%q is not in\n%s", want, once)
		}
	}
	if strings.Contains(once, "old s3") {
		t.Error("the old figures are still there")
	}
	if _, err := os.Stat(filepath.Join(folder, "s10-held.svg")); err != nil {
		t.Error(err)
	}
	if err := publish(file, folder, page); err != nil || read() != once {
		t.Errorf("the second time makes another page (%v)", err)
	}
	results, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	growth := filepath.Join(dir, "growth.jsonl")
	var lines strings.Builder
	for _, r := range results {
		if strings.HasPrefix(r.Scenario, "s10-held") {
			line, _ := json.Marshal(r)
			fmt.Fprintf(&lines, "%s\n", line)
		}
	}
	if err := os.WriteFile(growth, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := publish(growth, folder, page); err != nil || read() != once {
		t.Errorf("without a scenario that has a target, the targets or the machine change (%v)", err)
	}
	if _, err := fill("# Page\n", map[string]string{"s3": "figures"}); err == nil {
		t.Error("a page without markers for the figures was filled")
	}
}
