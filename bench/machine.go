package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// machine describes the machine of the measurements.
var machine = sync.OnceValue(func() string {
	processor := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
				processor = strings.TrimSpace(value)
				break
			}
		}
	}
	redis := "?"
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		for field := range strings.FieldsSeq(string(out)) {
			if v, ok := strings.CutPrefix(field, "v="); ok {
				redis = v
			}
		}
	}
	return fmt.Sprintf("%s, %d cores; %s, Redis %s", processor, runtime.NumCPU(), strings.Replace(runtime.Version(), "go", "Go ", 1), redis)
})

// load is the load average of the last minute.
func load() float64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}
