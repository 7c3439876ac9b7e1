// Package monitoring_test has the tests of what an operator is told: metrics, logs, traces.
package monitoring_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }
