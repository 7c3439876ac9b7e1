package locktest

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// RequestTypes returns the type of each request, in the order of the .proto file: one that comes before another may end
// what that would wait for.
func RequestTypes() (all []protoreflect.MessageType) {
	declared := messages.File_lockkeeper_v1_lockkeeper_proto.Messages()
	for i := range declared.Len() {
		m, err := protoregistry.GlobalTypes.FindMessageByName(declared.Get(i).FullName())
		if err == nil && request.IsMessage(m.Zero().Interface()) {
			all = append(all, m)
		}
	}
	return all
}

// Requests returns a request of each type for a lock. Some types are for an expirable semaphore only, and one is not.
func Requests(lock *messages.Lock) (all []proto.Message) {
	for _, kind := range RequestTypes() {
		if field := kind.Descriptor().Fields().ByName("lock"); field != nil {
			m := kind.New()
			if lock != nil {
				m.Set(field, protoreflect.ValueOfMessage(lock.ProtoReflect()))
			}
			all = append(all, m.Interface())
		}
	}
	return all
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
