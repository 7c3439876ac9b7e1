package turns_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Overlap()
	locktest.Main(m)
}
