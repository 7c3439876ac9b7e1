package request

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// home is a System with the usual rules.
type home struct{ rules Rules }

func (h *home) Rules() *Rules { return &h.rules }

func (h *home) DrawOrder(members []Member) (order []int) {
	for i := range members {
		order = append(order, i)
	}
	return order
}

// A lock whose form has no word for members is refused. The scripts would take it as a lock of another form.
func TestNewMembers_RefusesAFormWithoutAWordForMembers(t *testing.T) {
	s, fair := new(home), TraitsOf(messages.Kind_KIND_FAIR)
	s.rules.System = s
	given := []Member{{System: s, Kind: messages.Kind_KIND_PLAIN, Name: "a"}, {System: s, Kind: messages.Kind_KIND_FAIR, Name: "b"}}
	if _, err := NewMembers(given); err != nil {
		t.Error(err)
	}
	alone := *forms.Fair
	alone.Member = forms.Member{}
	fair.Form = &alone
	defer func() { fair.Form = forms.Fair }()
	if _, err := NewMembers(given); err == nil || !strings.Contains(err.Error(), "a fair lock cannot be a member of a MultiLock") {
		t.Errorf("the error is %v", err)
	}
}

// A form has a word for every way in which a kind may be a member.
func TestTraits_HaveAWordForEachMember(t *testing.T) {
	for kind, row := range traits {
		if row.Form == nil || row.Form.Member.Word == "" {
			continue
		}
		if row.Fenced && row.Form.Member.Fenced == "" || row.Shared && row.Form.Member.Shared == "" {
			t.Errorf("%v may be a member of a MultiLock, and its form has the words %+v", messages.Kind(kind), row.Form.Member)
		}
	}
}
