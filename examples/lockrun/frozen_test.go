//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// While Redis does not answer, nobody can confirm anything: after a loss lockrun does not
// wait for it.
func TestLeavesAfterALossWhileRedisIsFrozen(t *testing.T) {
	for what, options := range map[string][]string{
		"of the watchdog's lease": {"-watchdog", "1s"}, "of a fixed lease": {"-lease", "1s"},
	} {
		t.Run(what, func(t *testing.T) {
			server, lock := redistest.Start(t), redistest.Name(t)
			p := lockrun(t, server.URL(), append(append([]string{"-lock", lock}, options...), "--", "sh", "-c", patient)...)
			p.expectLine("ready")
			server.Pause(t)
			redistest.Eventually(t, "the loss is told", func() bool { return strings.Contains(p.said.String(), "lock was lost") })
			told := time.Now()
			p.expectExit(exitLost)
			if took := time.Since(told); took > time.Second {
				t.Errorf("it ended %v after it had told of the loss", took)
			}
			server.Resume(t)
		})
	}
}
