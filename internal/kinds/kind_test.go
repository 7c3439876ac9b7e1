package kinds

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A kind without rows would be a plain lock.
func TestTable_HasEveryKind(t *testing.T) {
	for number, name := range messages.Kind_name {
		if Table[messages.Kind(number)] == nil || Of(messages.Kind(number)).Word == "" {
			t.Errorf("%s has no row", name)
		}
	}
	if len(Table) != len(messages.Kind_name) {
		t.Errorf("there are %d rows for %d kinds", len(Table), len(messages.Kind_name))
	}
}
