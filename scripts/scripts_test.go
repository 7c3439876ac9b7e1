package scripts_test

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestDigests(t *testing.T) {
	eachRedis(t, func(t *testing.T, db *db) {
		for _, script := range scripts.All {
			if sha := db.load(t, script); sha != script.SHA {
				t.Errorf("%s: Redis says %s, we say %s", script.Name, sha, script.SHA)
			}
		}
	})
}

func TestHeaders(t *testing.T) {
	for _, script := range scripts.All {
		for _, word := range []string{"-- KEYS[", "-- Reply"} {
			if !strings.Contains(script.Source, word) {
				t.Errorf("%s.lua: its header lacks %q", script.Name, word)
			}
		}
		if !strings.HasPrefix(script.Source, "-- ") {
			t.Errorf("%s.lua: no header", script.Name)
		}
	}
}
