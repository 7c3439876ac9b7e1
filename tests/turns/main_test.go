package turns_test

import (
	"os"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(nextEnv); what != "" {
		runNext(what)
	}
	locktest.Overlap()
	locktest.Main(m)
}
