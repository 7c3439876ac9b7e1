package kinds

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// A kind without rows, here and in package request, would be a plain lock.
func TestTable_HasEveryKind(t *testing.T) {
	plain := request.TraitsOf(-1)
	for number, name := range messages.Kind_name {
		kind := messages.Kind(number)
		if Table[kind] == nil || Of(kind).Word == "" || kind != 0 && Of(kind).Traits == plain {
			t.Errorf("%s has no row", name)
		}
	}
	if len(Table) != len(messages.Kind_name) {
		t.Errorf("there are %d rows for %d kinds", len(Table), len(messages.Kind_name))
	}
}
