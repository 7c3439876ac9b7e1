package monitoring_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prometheus returns the names of the metrics in docs/operate.md, and of their attributes, as the exporter for
// Prometheus spells them.
func prometheus(t *testing.T) (metrics map[string]bool) {
	metrics = map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `(lockkeeper\\.[a-z_.]+)` \\| ([a-z -]+) \\| `.*?` \\| (.*?) ?\\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "operate.md"), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		switch m[2] {
		case "counter":
			metrics[name+"_total"] = true
		case "up-down counter":
			metrics[name] = true
		case "histogram":
			metrics[name+"_seconds_bucket"], metrics[name+"_seconds_count"], metrics[name+"_seconds_sum"] = true, true, true
		default:
			t.Errorf("%s is a %q", m[1], m[2])
		}
		for _, attribute := range regexp.MustCompile(`\w+`).FindAllString(m[3], -1) {
			metrics["lockkeeper_"+attribute] = true
		}
	}
	return metrics
}

// The dashboard loads. It and the alerting rules query all metrics that are measured, and no others.
func TestDashboard_QueriesOnlyExistingMetrics(t *testing.T) {
	dashboard, alerts, metrics := read(t, "monitoring/grafana.json"), read(t, "monitoring/alerts.yml"), prometheus(t)
	var panels struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(dashboard), &panels); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	name := regexp.MustCompile(`\blockkeeper_[a-z_]+`)
	for _, panel := range panels.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
	}
	for what, text := range map[string]string{"the dashboard": dashboard, "an alert": alerts} {
		for _, n := range name.FindAllString(text, -1) {
			if asked[n] = true; !metrics[n] {
				t.Errorf("%s queries %s, which does not exist", what, n)
			}
		}
	}
	for n := range metrics {
		if !asked[n] && !strings.HasSuffix(n, "_sum") && !asked[strings.TrimSuffix(n, "_count")+"_bucket"] {
			t.Errorf("neither the dashboard nor an alert queries %s", n)
		}
	}
}
