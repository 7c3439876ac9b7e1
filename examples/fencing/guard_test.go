//go:build unix

package main

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A guard accepts the highest token so far, and any higher token. Tokens of reads count as well, and tokens are
// compared as numbers.
func TestGuard_RefusesLowerTokens(t *testing.T) {
	s := stock{redistest.Shared(t).Client(t), redistest.Name(t)}
	for _, step := range []struct {
		token   int64
		write   string // "" only reads
		want    string
		refused bool
	}{
		{8, "1", "1", false}, {8, "2", "2", false}, {7, "3", "", true}, {9, "", "2", false}, {8, "3", "", true},
		{8, "", "", true}, {10, "4", "4", false}, {9, "5", "", true}, {10, "", "4", false},
	} {
		var fields []string
		if step.write != "" {
			fields = []string{"boxes", step.write}
		}
		record, err := s.use(t.Context(), step.token, fields...)
		if step.refused != errors.Is(err, errLate) || record["boxes"] != step.want {
			t.Errorf("%+v: %v, %v", step, record, err)
		}
	}
}
