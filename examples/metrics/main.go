// Metrics shows the metrics of Lockkeeper as Prometheus reads them: an OpenTelemetry meter whose reader is an exporter
// for Prometheus, behind an HTTP handler. docs/operate.md has a dashboard and alerting rules.
//
//	go run ./examples/metrics
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// scrape prints the metrics of the locks; for histograms only their counts.
func scrape(url string) {
	response, err := http.Get(url)
	demo.Check(err)
	defer response.Body.Close()
	metric := regexp.MustCompile(`^lockkeeper_([a-z_]+_seconds_count|[a-z_]+_total|[a-z]+)[{ ]`)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if metric.MatchString(lines.Text()) {
			fmt.Println(lines.Text())
		}
	}
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	exporter, err := prometheus.New(prometheus.WithoutScopeInfo())
	demo.Check(err)
	meter := metric.NewMeterProvider(metric.WithReader(exporter)).Meter("lockkeeper")
	sys, closeSystem := demo.Process(client, lockkeeper.Config{Meter: meter})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	demo.Check(err)
	go http.Serve(listener, promhttp.Handler())
	defer listener.Close()

	ctx := context.Background()
	demo.Check(sys.Lock("reports").Do(ctx, func(ctx context.Context) error {
		_, err := sys.Lock("reports").TryAcquire(context.Background()) // another holder, since the context is another
		fmt.Println("a second one is refused:", err != nil)
		return sys.Lock("reports").Do(ctx, func(context.Context) error { return nil })
	}))
	closeSystem() // then everything is counted
	scrape("http://" + listener.Addr().String())
}
