package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Whatever bytes can be read as one of the messages: what is shown of it does not depend
// on its hold id, nor on fields that are not known here, and it comes through a second
// time of being written and read as it is.
func FuzzMessages(f *testing.F) {
	all := File_lockkeeper_v1_lockkeeper_proto.Messages()
	for i := range all.Len() { // with a lock, a hold id and an owner, as far as they have them
		f.Add(uint8(i), []byte("\x0a\x08\x0a\x06orders\x12\x10hold id 123 4567\x1a\x0d\x0a\x04host\x12\x05actor"))
		f.Add(uint8(i), []byte("\x12\x02\xff\xfe"))
	}
	seed(f, &Acquire{Lock: &Lock{Name: "orders", Kind: Kind_KIND_FENCED}, Lease: durationpb.New(-1), Wait: &durationpb.Duration{Seconds: 1 << 62, Nanos: -5}})
	seed(f, &Acquire{Lock: &Lock{Kind: Kind_KIND_MULTI, Members: []*Lock{{Name: "a"}, {Name: "b", Kind: 99, Mode: -1}, {Members: []*Lock{{}}}}}})
	seed(f, &Release{Lock: &Lock{Name: "[redacted]"}, HoldId: `"quoted" \ [redacted]`})
	f.Add(uint8(4), []byte("\x12\x06secret\xc2\x3e\x06secret\x0a\x09\xc2\x3e\x06secret"))
	f.Fuzz(func(t *testing.T, which uint8, wire []byte) {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(all.Get(int(which) % all.Len()).FullName())
		if err != nil {
			t.Fatal(err)
		}
		m := kind.New().Interface()
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		if shown, other := show(m), show(stranger(m)); shown != other {
			t.Errorf("what is shown depends on the hold id or on unknown fields:\n%s\n%s", shown, other)
		}
		first := write(t, m)
		again := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(first, again); err != nil {
			t.Fatalf("%v cannot be read again: %v", m, err)
		}
		if !proto.Equal(m, again) {
			t.Errorf("read again as %v, was %v", again, m)
		}
		if second := write(t, again); !bytes.Equal(first, second) {
			t.Errorf("written as %x, then as %x", first, second)
		}
	})
}

func seed(f *testing.F, m proto.Message) {
	f.Helper()
	f.Add(uint8(m.ProtoReflect().Descriptor().Index()), write(f, m))
}

func write(t testing.TB, m proto.Message) []byte {
	t.Helper()
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("%v cannot be written: %v", m, err)
	}
	return wire
}

// show is everything that may come to be seen of a message.
func show(m proto.Message) string {
	text, err := json.Marshal(m)
	return fmt.Sprintf("%v\n%+v\n%s\n%v\n%s\n%s\n%s\n%s %v",
		m, m, m, envelope(m), untimed(logText(m)), untimed(logJSON(m)), untimed(logText(envelope(m))), text, err)
}

// untimed cuts off the time of a log line.
func untimed(line string) string {
	_, rest, _ := strings.Cut(line, "sent")
	return rest
}

// stranger is the same message with another hold id, and without unknown fields.
func stranger(m proto.Message) proto.Message {
	m = proto.Clone(m)
	if field := m.ProtoReflect().Descriptor().Fields().ByName("hold_id"); field != nil && m.ProtoReflect().Has(field) {
		m.ProtoReflect().Set(field, protoreflect.ValueOfString("another"))
	}
	_ = protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		if part, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok {
			part.SetUnknown(nil)
		}
		return nil
	})
	return m
}
