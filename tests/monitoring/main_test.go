// Package monitoring_test tests what operators see: metrics, logs, traces.
package monitoring_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }
