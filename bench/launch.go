package main

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

func writeReport(r report) error { return gob.NewEncoder(os.Stdout).Encode(r) }

// A result is one measurement. The times are those of a pair in s1 and s2, of the
// wait in s3 and s4, and of the hand-over in s6.
type result struct {
	Scenario           string  `json:"scenario"`
	Lib                string  `json:"lib"`
	Round              int     `json:"round"`
	Rate               float64 `json:"rate"` // grants a second
	P50                float64 `json:"p50_us"`
	P99                float64 `json:"p99_us"`
	RedisCommandsPerOp float64 `json:"redis_commands_per_op"` // those that scripts call included
	SentPerOp          float64 `json:"sent_commands_per_op"`
	MaxMin             float64 `json:"max_min"` // grants: the luckiest by the unluckiest goroutine, in s4 process; none counts as one
	ClientCPU          float64 `json:"client_cpu_us_per_op"`
	RedisCPU           float64 `json:"redis_cpu_us_per_op"`
	Stuck              int     `json:"stuck,omitempty"`          // goroutines that still waited, for a free lock, when all others had ended
	CommandsPerSecond  float64 `json:"commands_per_s,omitempty"` // sent
	RSS                float64 `json:"rss_mb,omitempty"`
	Goroutines         int     `json:"goroutines,omitempty"`
}

// launch starts Redis and the child processes of one measurement, and sums up their reports.
func launch(t task, s scenario, round int) (result, error) {
	addr, stop, err := startRedis(s.pinned)
	if err != nil {
		return result{}, err
	}
	defer stop()
	t.Addr = addr
	memory, err := os.CreateTemp("", "lockkeeper-bench")
	if err != nil {
		return result{}, err
	}
	defer os.Remove(memory.Name())
	defer memory.Close()
	if err := memory.Truncate(int64(os.Getpagesize())); err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	children, outputs := make([]*exec.Cmd, s.processes), make([]bytes.Buffer, s.processes)
	for i := range children {
		t.Index = i
		spec, err := json.Marshal(t)
		if err != nil {
			return result{}, err
		}
		child := command(s.pinned, self)
		child.Env = append(os.Environ(), childVariable+"="+string(spec))
		if s.pinned {
			child.Env = append(child.Env, "GOMAXPROCS=1")
		}
		child.Stdout, child.Stderr, child.ExtraFiles = &outputs[i], os.Stderr, []*os.File{memory}
		if err := child.Start(); err != nil {
			return result{}, err
		}
		defer child.Process.Kill()
		children[i] = child
	}
	// One that fails would leave the others waiting for it.
	overdue := time.AfterFunc(t.span(12)+3*lease, func() {
		for _, child := range children {
			_ = child.Process.Kill()
		}
	})
	defer overdue.Stop()
	reports := make([]report, s.processes)
	for i, child := range children {
		if err := child.Wait(); err != nil {
			return result{}, fmt.Errorf("process %d: %w", i, err)
		}
		if err := gob.NewDecoder(&outputs[i]).Decode(&reports[i]); err != nil {
			return result{}, err
		}
	}
	return sum(t, s, round, reports)
}

func sum(t task, s scenario, round int, reports []report) (result, error) {
	var (
		times      histogram
		clientCPU  float64
		grants     int
		shares     []int // of each process, or of each goroutine if there is one process
		first      = reports[0]
		r          = result{Scenario: t.Scenario, Lib: t.Lib, Round: round}
		perProcess = s.processes > 1
	)
	for i := range reports {
		times.merge(&reports[i].Times)
		clientCPU += reports[i].ClientCPU
		r.Stuck += reports[i].Stuck
		mine := 0
		for _, n := range reports[i].Grants {
			mine += n
		}
		grants += mine
		if perProcess {
			shares = append(shares, mine)
		} else {
			shares = reports[i].Grants
		}
	}
	if t.Scenario == "s6" {
		shares = shares[1:] // the second process counts the hand-overs
		grants = shares[0]
	}
	if r.Stuck > 0 && t.Lib == "lockkeeper" {
		return r, fmt.Errorf("%d goroutines waited for a free lock", r.Stuck)
	}
	if grants == 0 {
		return r, errors.New("nobody was granted the lock")
	}
	n := float64(grants)
	r.Rate = n / first.Seconds
	r.P50, r.P99 = times.quantile(0.5), times.quantile(0.99)
	r.MaxMin = float64(slices.Max(shares)) / float64(max(slices.Min(shares), 1))
	if t.Scenario == "s5" {
		r.CommandsPerSecond = float64(first.Redis.Sent) / first.Seconds
		r.RSS, r.Goroutines = first.RSS, first.Goroutines
		n = heldLocks * first.Seconds // an op is to hold a lock for a second
	}
	r.RedisCommandsPerOp, r.SentPerOp = float64(first.Redis.All)/n, float64(first.Redis.Sent)/n
	r.ClientCPU, r.RedisCPU = clientCPU*1e6/n, first.Redis.CPU*1e6/n
	return r, nil
}
