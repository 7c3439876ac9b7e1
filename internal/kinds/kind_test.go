package kinds

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Locks of one format, and no others, have one form in Redis.
func TestTable_StoresEachFormatInItsForm(t *testing.T) {
	forms := map[protocol.Kind]messages.Kind{}
	for kind, row := range Table {
		if !row.IsLock() || row.Consists != request.OneKey {
			continue
		}
		if format, known := forms[row.Stored]; known && format != row.Format || Of(row.Format).Stored != row.Stored {
			t.Errorf("%v is stored as %v, of another format", kind, row.Stored)
		}
		forms[row.Stored] = row.Format
	}
}

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
