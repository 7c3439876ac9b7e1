package protocol_test

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The scripts accept every entry of the wait queue that a client may write.
func TestLongestEntry_IsAccepted(t *testing.T) {
	t.Parallel()
	config := machine.Config{Poll: 3650 * machine.LongestEntry, Watchdog: 100 * 365 * machine.LongestEntry}
	if got := config.EntryTimeout().Milliseconds(); got != scripts.MaxEntryTTL {
		t.Errorf("an entry lasts for up to %d ms, and in the scripts %d", got, scripts.MaxEntryTTL)
	}
}
