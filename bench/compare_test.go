package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// someResults are three rounds of s3, in which the machine gets slower, and one round of shares and of growth.
const someResults = `
{"scenario":"s3","lib":"redsync","round":1,"seconds":2,"rate":1000,"p50_us":1000,"p99_us":90000,"max_min":9,"sent_commands_per_op":4,"machine":"m","load":1}
{"scenario":"s3","lib":"lockkeeper","round":1,"seconds":2,"rate":1}
{"scenario":"s3","lib":"lockkeeper","round":1,"seconds":2,"rate":90000,"p50_us":100,"p99_us":1000,"max_min":1.05,"sent_commands_per_op":0.00123,"machine":"m","load":2}
{"scenario":"s3","lib":"lockkeeper","round":2,"seconds":2,"rate":60000,"p50_us":110,"p99_us":1100,"max_min":1.15,"sent_commands_per_op":0.00124,"machine":"m","load":3}
{"scenario":"s3","lib":"lockkeeper","round":3,"seconds":2,"rate":20000,"p50_us":120,"p99_us":1200,"max_min":1.25,"sent_commands_per_op":0.00125,"machine":"m","load":4}
{"scenario":"s3","lib":"raw","round":1,"seconds":2,"rate":3000,"machine":"m","load":5}
{"scenario":"s3","lib":"raw","round":2,"seconds":2,"rate":1500,"machine":"m","load":6}
{"scenario":"s3","lib":"raw","round":3,"seconds":2,"rate":1000,"machine":"m","load":7}
{"scenario":"s3","lib":"rueidislock","round":1,"seconds":2,"rate":2000,"stuck":2,"machine":"m","load":8}
{"scenario":"s17-plain","lib":"lockkeeper","round":1,"seconds":2,"rate":50000,"p99_us":20000,"max_min":1.1,"machine":"m","load":5}
{"scenario":"s17-fair","lib":"lockkeeper","round":1,"seconds":2,"rate":40000,"p99_us":30000,"max_min":1,"machine":"m","load":6}
{"scenario":"s10-held-100","lib":"lockkeeper","round":1,"seconds":2,"size":100,"rss_mb":30,"goroutines":20,"heap_bytes_per_lock":5000,"machine":"m","load":9}
{"scenario":"s10-held-1000","lib":"lockkeeper","round":1,"seconds":2,"size":1000,"rss_mb":40,"goroutines":20,"heap_bytes_per_lock":4000,"machine":"m","load":10}
`

func readSome(t *testing.T) (file string, results []result) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "some.jsonl")
	if err := os.WriteFile(file, []byte(someResults), 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := readResults(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, results
}

func TestMedian_IsTheMiddle(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 5}, 5},
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) = %v, and should be %v", test.values, got, test.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestHistogram_KeepsQuantiles(t *testing.T) {
	var h, other histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Microsecond)
		other.add(time.Duration(i+1001) * time.Microsecond)
	}
	h.merge(&other)
	for q, want := range map[float64]float64{0: 1, 0.5: 1000, 0.99: 1980} {
		if got := h.quantile(q); math.Abs(got-want) > 0.016*want+1 {
			t.Errorf("quantile %v is %v µs, and should be about %v", q, got, want)
		}
	}
}

func TestComparison_TakesRatiosWithinARound(t *testing.T) {
	_, results := readSome(t)
	c := compare("s3", results)
	if got := strings.Join(c.libs(), " "); got != "lockkeeper raw rueidislock redsync" {
		t.Errorf("libraries: %s", got)
	}
	if got := c.median(ours, rate); got != 60000 {
		t.Errorf("median %v: of a measurement made twice, the later should count", got)
	}
	if got := c.ratio(ours, limit, rate); got != 30 {
		t.Errorf("ratio %v, and should be the median of those within a round: 30, 40 and 20", got)
	}
	if got := c.bestPeer(); got != "rueidislock" {
		t.Errorf("best peer %q", got)
	}
	if got := c.ratio("redsync", "redislock", rate); !math.IsNaN(got) {
		t.Errorf("ratio %v to a library that was not measured", got)
	}
	if got, want := c.text(), "    go run -C bench . -scenario s3 -rounds 3 -seconds 2\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the text has no command %q:\n%s", want, got)
	}
}

// show has the conditions, the targets, and each section once.
func TestShow_HasEachSectionOnce(t *testing.T) {
	file, _ := readSome(t)
	var text strings.Builder
	if err := show(file, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"median 5.5, from 1.0 to 10.0", "| s3 | p99 wait", "**s3: 64 goroutines on one key**", "| lockkeeper | 60,000 |", "**s10-held: ", "**s17: "} {
		if n := strings.Count(text.String(), want); n < 1 || n > 1 && strings.HasPrefix(want, "**") {
			t.Errorf("%q is there %d times in\n%s", want, n, &text)
		}
	}
	if strings.Contains(text.String(), "**s1:") {
		t.Error("a section was shown of which nothing was measured")
	}
}

func TestTargets_AreJudged(t *testing.T) {
	_, results := readSome(t)
	table := targetTable(results)
	for _, want := range []string{
		"| s3 | grants/s ≥ 10 × the best other library | 45.00 × rueidislock | 45.00–45.00 | yes |",
		"| s3 | p99 wait ≤ 2,000 µs | 1,100 | 1,000–1,200 | yes |",
		"| s3 | max/min ≤ 1.10 | 1.15 | 1.05–1.25 | no |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	if strings.Contains(table, "| s1 |") {
		t.Error("a target was judged of which nothing was measured")
	}
}

// Every choice of scenarios is valid, and every library named in a scenario exists.
func TestScenarios_AreValid(t *testing.T) {
	for names, want := range map[string]int{"": len(scenarios), "s12": 1, "s10-held": 6, "s1,s17": 6, "s21": 6, "s17-fair": 1} {
		if chosen, err := choose(names); err != nil || len(chosen) != want {
			t.Errorf("%q is %d scenarios, %v", names, len(chosen), err)
		}
	}
	if _, err := choose("s1,s99"); err == nil {
		t.Error("there is no s99")
	}
	for _, s := range scenarios {
		for _, lib := range s.libs {
			if _, err := find(lib); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
	}
}
