package main

import (
	"fmt"
	"slices"
)

// A headline is the figure by which a scenario compares the libraries.
type headline struct {
	name  string
	of    func(result) float64
	lower bool // is better
}

var (
	rate     = headline{"grants/s", func(r result) float64 { return r.Rate }, false}
	commands = headline{"commands/s", func(r result) float64 { return r.CommandsPerSecond }, true}
	latency  = headline{"p50, µs", func(r result) float64 { return r.P50 }, true}
)

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// print writes the medians as a Markdown table. A ratio is the median of the ratios
// within a round.
func (s scenario) print(name string, results []result) {
	of := map[string][]result{}
	var libs []string
	for _, r := range results {
		if of[r.Lib] == nil {
			libs = append(libs, r.Lib)
		}
		of[r.Lib] = append(of[r.Lib], r)
	}
	each := func(lib string, figure func(result) float64) (values []float64) {
		for _, r := range of[lib] {
			values = append(values, figure(r))
		}
		return values
	}
	peer := ""
	for _, lib := range libs {
		if lib == "lockkeeper" || lib == "raw" {
			continue
		}
		mine, best := median(each(lib, s.headline.of)), median(each(peer, s.headline.of))
		if peer == "" || mine < best == s.headline.lower {
			peer = lib
		}
	}
	ratio := func(lib, base string) string {
		var ratios []float64
		for _, r := range of[lib] {
			for _, b := range of[base] {
				if b.Round == r.Round {
					ratios = append(ratios, s.headline.of(r)/s.headline.of(b))
				}
			}
		}
		if ratios == nil {
			return "–"
		}
		return fmt.Sprintf("%.2f", median(ratios))
	}

	fmt.Printf("\n%s: %s\n\n", name, s.title)
	fmt.Printf("| library | %s | min–max | × raw | × best peer | ", s.headline.name)
	hold := name == "s5"
	if hold {
		fmt.Println("RSS, MB | goroutines | client CPU, % of a core | Redis CPU, % |\n|---|---|---|---|---|---|---|---|---|")
	} else {
		fmt.Println("p50, µs | p99, µs | max/min | sent/grant (all) | client CPU, µs | Redis CPU, µs |\n|---|---|---|---|---|---|---|---|---|---|---|")
	}
	for _, lib := range libs {
		m := func(figure func(result) float64) float64 { return median(each(lib, figure)) }
		main := each(lib, s.headline.of)
		fmt.Printf("| %s | %.0f | %.0f–%.0f | %s | %s | ", lib, median(main), slices.Min(main), slices.Max(main), ratio(lib, "raw"), ratio(lib, peer))
		client, redis := m(func(r result) float64 { return r.ClientCPU }), m(func(r result) float64 { return r.RedisCPU })
		if hold {
			percent := heldLocks / 1e6 * 100
			fmt.Printf("%.0f | %.0f | %.1f | %.1f |\n", m(func(r result) float64 { return r.RSS }),
				m(func(r result) float64 { return float64(r.Goroutines) }), client*percent, redis*percent)
			continue
		}
		fmt.Printf("%.0f | %.0f | %.2f | %.3g (%.3g) | %.1f | %.1f |\n",
			m(func(r result) float64 { return r.P50 }), m(func(r result) float64 { return r.P99 }), m(func(r result) float64 { return r.MaxMin }),
			m(func(r result) float64 { return r.SentPerOp }), m(func(r result) float64 { return r.RedisCommandsPerOp }), client, redis)
	}
	for _, r := range results {
		if r.Stuck > 0 {
			fmt.Printf("\n%s, round %d: %d goroutines still waited, for a free lock, %v after the end.\n", r.Lib, r.Round, r.Stuck, patience)
		}
	}
}
