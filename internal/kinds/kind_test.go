package kinds

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Only a plain and a fenced lock may use one key of Redis at the same time.
func TestTable_StoresOnlyPlainAndFencedAlike(t *testing.T) {
	for kind, row := range Table {
		want := kind
		if kind == messages.Kind_KIND_FENCED {
			want = messages.Kind_KIND_PLAIN
		}
		if row.StoredAs != want || (row.Form != nil) != (row.IsLock() && row.Composition == request.OneKey) {
			t.Errorf("%v is stored as %v, in the form %+v", kind, row.StoredAs, row.Form)
		}
	}
}

// A kind without a row in package request would be a plain lock.
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
