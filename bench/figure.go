package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A figure is a measured quantity.
type figure struct {
	name     string
	of       func(result) float64
	lower    bool // is better
	decimals int  // negative: significant digits
}

var (
	rate       = figure{name: "grants/s", of: func(r result) float64 { return r.Rate }}
	p50        = figure{name: "p50, µs", of: func(r result) float64 { return r.P50 }, lower: true}
	p99        = figure{name: "p99, µs", of: func(r result) float64 { return r.P99 }, lower: true}
	p50Wait    = figure{name: "p50 wait, µs", of: p50.of, lower: true}
	p99Wait    = figure{name: "p99 wait, µs", of: p99.of, lower: true}
	maxMin     = figure{name: "max/min", of: func(r result) float64 { return r.MaxMin }, lower: true, decimals: 2}
	sent       = figure{name: "sent/grant", of: func(r result) float64 { return r.SentPerOp }, lower: true, decimals: -3}
	called     = figure{name: "all commands/grant", of: func(r result) float64 { return r.RedisCommandsPerOp }, lower: true, decimals: -3}
	clientTime = figure{name: "client CPU, µs", of: func(r result) float64 { return r.ClientCPU }, lower: true, decimals: 1}
	redisTime  = figure{name: "Redis CPU, µs", of: func(r result) float64 { return r.RedisCPU }, lower: true, decimals: 1}

	commands    = figure{name: "commands/s", of: func(r result) float64 { return r.CommandsPerSecond }, lower: true, decimals: 1}
	resident    = figure{name: "RSS, MB", of: func(r result) float64 { return r.RSS }, lower: true}
	heap        = figure{name: "live heap and stacks, MB", of: func(r result) float64 { return r.Heap }, lower: true, decimals: 1}
	running     = figure{name: "goroutines", of: func(r result) float64 { return float64(r.Goroutines) }, lower: true}
	clientShare = figure{
		name:  "client CPU, % of a core",
		of:    func(r result) float64 { return r.ClientCPU * float64(r.Size) / 1e4 },
		lower: true, decimals: 1,
	}
	redisShare = figure{
		name:  "Redis CPU, %",
		of:    func(r result) float64 { return r.RedisCPU * float64(r.Size) / 1e4 },
		lower: true, decimals: 1,
	}

	rssEach      = figure{name: "RSS, bytes", of: func(r result) float64 { return r.RSSPerLock }, lower: true}
	heapEach     = figure{name: "live heap and stacks, bytes", of: func(r result) float64 { return r.HeapPerLock }, lower: true}
	commandsEach = figure{name: "commands/s", of: func(r result) float64 { return r.SentPerOp }, lower: true, decimals: -2}
	clientEach   = figure{name: "client CPU, µs/s", of: func(r result) float64 { return r.ClientCPU }, lower: true, decimals: -2}
	redisEach    = figure{name: "Redis CPU, µs/s", of: func(r result) float64 { return r.RedisCPU }, lower: true, decimals: -2}
)

var (
	pairColumns     = []figure{rate, p50, p99, maxMin, sent, called, clientTime, redisTime}
	waitColumns     = []figure{rate, p99Wait, p50Wait, maxMin, sent, called, clientTime, redisTime}
	shareColumns    = []figure{maxMin, rate, p99Wait, p50Wait, sent, called}
	kindColumns     = []figure{redisTime, clientTime, rate, sent, called}
	handOverColumns = []figure{p50, p99, sent, called, clientTime, redisTime}
	freshColumns    = append(slices.Clone(pairColumns), resident)
	heldColumns     = []figure{commands, resident, heap, running, clientShare, redisShare}
	growthColumns   = []figure{heapEach, rssEach, commandsEach, clientEach, redisEach}
)

// text formats a value with the figure's decimals and commas between thousands; a dash if
// it is not a number.
func (f figure) text(value float64) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "–"
	}
	s := ""
	if f.decimals >= 0 {
		s = strconv.FormatFloat(value, 'f', f.decimals, 64)
	} else {
		digits := -f.decimals - 1
		if value != 0 {
			digits -= int(math.Floor(math.Log10(math.Abs(value))))
		}
		s = strconv.FormatFloat(value, 'f', max(digits, 0), 64)
	}
	whole, fraction, found := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if !found {
		return whole
	}
	if f.decimals < 0 {
		fraction = strings.TrimRight(fraction, "0")
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
