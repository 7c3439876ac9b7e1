package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// A result is one measurement. Without contention the times are the times of a pair, with contention the times of the
// wait for the grant, and in s6 the times of the hand-over. An op is a grant; in s5 and s10 an op is a lock held, or
// waited for, for a second.
type result struct {
	Scenario           string  `json:"scenario"`
	Lib                string  `json:"lib"`
	Round              int     `json:"round"`
	Seconds            float64 `json:"seconds"` // as in -seconds
	Rate               float64 `json:"rate"`    // grants a second
	P50                float64 `json:"p50_us"`
	P99                float64 `json:"p99_us"`
	RedisCommandsPerOp float64 `json:"redis_commands_per_op"` // including those called by scripts
	SentPerOp          float64 `json:"sent_commands_per_op"`
	// MaxMin is the most grants of a goroutine, or of a process if there are several, divided by the fewest; no grant
	// counts as one.
	MaxMin float64 `json:"max_min"`

	ClientCPU float64 `json:"client_cpu_us_per_op"`
	RedisCPU  float64 `json:"redis_cpu_us_per_op"`
	Stuck     int     `json:"stuck,omitempty"` // goroutines that still waited for a free lock when all others had ended

	Size              int     `json:"size,omitempty"`
	CommandsPerSecond float64 `json:"commands_per_s,omitempty"` // sent
	RSS               float64 `json:"rss_mb,omitempty"`
	Heap              float64 `json:"heap_mb,omitempty"` // including stacks
	Goroutines        int     `json:"goroutines,omitempty"`
	RSSPerLock        float64 `json:"rss_bytes_per_lock,omitempty"`
	HeapPerLock       float64 `json:"heap_bytes_per_lock,omitempty"`

	Machine string  `json:"machine"`
	Load    float64 `json:"load"` // average of the minute before
}

// sum combines the reports of the child processes. The first of them measures Redis and
// itself.
func sum(t task, s scenario, round int, reports []report) (result, error) {
	var (
		times     histogram
		clientCPU float64
		grants    int
		shares    []int // of each process, or of each goroutine if only one process has grants
		first     = reports[0]
		r         = result{Scenario: s.name, Lib: t.Lib, Round: round}
	)
	for i := range reports {
		child := &reports[i]
		times.merge(&child.Times)
		clientCPU += child.ClientCPU
		r.Stuck += child.Stuck
		mine := 0
		for _, n := range child.Grants {
			mine += n
		}
		grants += mine
		if child.Grants != nil {
			shares = append(shares, mine)
		}
	}
	if s.processes == 1 {
		shares = first.Grants
	}
	if r.Stuck > 0 && !isPeer(t.Lib) {
		return r, fmt.Errorf("%d goroutines waited for a free lock", r.Stuck)
	}
	if grants == 0 {
		return r, errors.New("no goroutine was granted the lock")
	}
	n := float64(grants)
	r.Rate = n / first.Seconds
	r.P50, r.P99 = times.quantile(0.5), times.quantile(0.99)
	r.MaxMin = float64(slices.Max(shares)) / float64(max(slices.Min(shares), 1))
	if s.size > 0 {
		size := float64(s.size)
		n = size * first.Seconds
		clientCPU = first.ClientCPU
		r.Size, r.CommandsPerSecond = s.size, float64(first.Redis.Sent)/first.Seconds
		r.RSS, r.Heap, r.Goroutines = first.Memory.RSS, first.Memory.Heap, first.Goroutines
		r.RSSPerLock = max(first.Memory.RSS-first.Before.RSS, 0) * 1e6 / size
		r.HeapPerLock = max(first.Memory.Heap-first.Before.Heap, 0) * 1e6 / size
	}
	if s.fresh {
		r.RSS = first.Memory.RSS
	}
	r.RedisCommandsPerOp, r.SentPerOp = float64(first.Redis.All)/n, float64(first.Redis.Sent)/n
	r.ClientCPU, r.RedisCPU = clientCPU*1e6/n, first.Redis.CPU*1e6/n
	return r, nil
}

// readResults reads a file of -json. A later result of the same measurement replaces an earlier one.
func readResults(file string) ([]result, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	type id struct {
		scenario, lib string
		round         int
	}
	index := map[id]int{}
	var results []result
	for decoder := json.NewDecoder(f); decoder.More(); {
		var r result
		if err := decoder.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		at := id{r.Scenario, r.Lib, r.Round}
		if i, known := index[at]; known {
			results[i] = r
			continue
		}
		index[at] = len(results)
		results = append(results, r)
	}
	return results, nil
}
