package main

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

func writeReport(r report) error { return gob.NewEncoder(os.Stdout).Encode(r) }

// launch starts Redis and the child processes of one measurement, and combines their reports.
func launch(t task, s scenario, cluster bool, round int) (result, error) {
	before := load()
	servers, err := startRedis(s.pinned, cluster)
	if err != nil {
		return result{}, err
	}
	defer rig.StopAll(servers)
	t.Addr, t.Near = servers[0].Addr(), nil
	for _, s := range servers {
		t.Near = append(t.Near, s.Addr())
	}
	if s.away > 0 {
		far, err := rig.NewProxy(t.Addr, rig.ProxyOptions{Far: s.away, Bytes: true})
		if err != nil {
			return result{}, err
		}
		defer far.Close()
		t.Addr = far.Addr()
	}
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
		line := append(onFirstCore(s.pinned), self)
		child := exec.Command(line[0], line[1:]...)
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
	// If one fails, the others would wait for it forever.
	overdue := time.AfterFunc(t.span(2)+10*lease, func() {
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
	r, err := sum(t, s, round, reports)
	r.Machine, r.Load = machine(), before
	return r, err
}
