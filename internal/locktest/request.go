package locktest

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Requests returns a request of each type for a lock.
func Requests(lock *messages.Lock) []proto.Message {
	return []proto.Message{
		&messages.Acquire{Lock: lock}, &messages.Release{Lock: lock}, &messages.Extend{Lock: lock}, &messages.Cancel{Lock: lock},
		&messages.ForceRelease{Lock: lock}, &messages.Inspect{Lock: lock},
	}
}

// Refusal is implemented by every answer that refuses a request.
type Refusal interface {
	GetReason() messages.Reason
	GetDetail() string
}

// ExpectRefusal sends a request that must be refused with a reason and with words in the detail.
func ExpectRefusal(t *testing.T, p *Probe, request proto.Message, want messages.Reason, words ...string) {
	t.Helper()
	answer := Ask[Refusal](t, p, request)
	if answer.GetReason() != want {
		t.Errorf("%T{%v}: answered %T{%v}, want %v", request, request, answer, answer, want)
	}
	for _, word := range words {
		if !strings.Contains(answer.GetDetail(), word) {
			t.Errorf("%T{%v}: the detail %q does not contain %q", request, request, answer.GetDetail(), word)
		}
	}
}
