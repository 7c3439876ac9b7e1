package locktest

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Requests are all kinds of requests about a lock.
func Requests(lock *messages.Lock) []proto.Message {
	return []proto.Message{
		&messages.Acquire{Lock: lock}, &messages.Release{Lock: lock}, &messages.Cancel{Lock: lock},
		&messages.ForceRelease{Lock: lock}, &messages.Inspect{Lock: lock},
	}
}

// Refusal is what all answers that say no have in common.
type Refusal interface {
	GetReason() messages.Reason
	GetDetail() string
}

// Refuses sends a request and expects to be refused, and told why.
func ExpectRefusal(t *testing.T, p *Probe, request proto.Message, want messages.Reason, words ...string) {
	t.Helper()
	answer := Ask[Refusal](t, p, request)
	if answer.GetReason() != want {
		t.Errorf("%T{%v}: answered %T{%v}, want %v", request, request, answer, answer, want)
	}
	for _, word := range words {
		if !strings.Contains(answer.GetDetail(), word) {
			t.Errorf("%T{%v}: the detail %q does not say %q", request, request, answer.GetDetail(), word)
		}
	}
}
