package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestProto_HasItsPath(t *testing.T) {
	const want = "lockkeeper/v1/lockkeeper.proto"
	if got := File_lockkeeper_v1_lockkeeper_proto.Path(); got != want {
		t.Errorf("registered as %q, want %q", got, want)
	}
}

func TestRedacted_HidesHoldIDs(t *testing.T) {
	nested, err := anypb.New(&Release{HoldId: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	unknown := &Release{Lock: &Lock{}}
	field := protowire.AppendTag(nil, 1000, protowire.BytesType)
	unknown.Lock.ProtoReflect().SetUnknown(protowire.AppendString(field, "secret"))

	tests := []struct {
		name string
		m    proto.Message
		want string
	}{
		{"set", &Release{HoldId: "secret"}, `hold_id:"[redacted]"`},
		{"not set", &Release{}, ""},
		{"nil", (*Release)(nil), "<nil>"},
		{"a list", &Acquired{PermitIds: []string{"secret", "other"}}, `permit_ids:"[redacted]"`},
		{"nested", nested, `[type.googleapis.com/lockkeeper.v1.Release]:{hold_id:"[redacted]"}`},
		{"unknown field", unknown, "lock:{}"},
		{"invalid UTF-8", &Release{Lock: &Lock{Name: "\xff"}, HoldId: "\xff"}, `lock:{name:"\xff"}hold_id:"[redacted]"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// prototext inserts spaces at random.
			if got := strings.ReplaceAll(redacted(test.m), " ", ""); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// envelope wraps m as proto.actor does. It logs whole envelopes, too.
func envelope(m proto.Message) *actor.MessageEnvelope {
	return &actor.MessageEnvelope{Message: m}
}

func logText(v any) string {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("sent", slog.Any("message", v))
	return out.String()
}

func logJSON(v any) string {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("sent", slog.Any("message", v))
	return out.String()
}

// For all bytes that can be decoded as a message: its formatted text does not depend on the
// hold id, nor on unknown fields, and encoding and decoding it again returns the same message.
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
		if shown, other := show(m), show(withoutSecrets(m)); shown != other {
			t.Errorf("the text depends on the hold id or on unknown fields:\n%s\n%s", shown, other)
		}
		first := write(t, m)
		again := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(first, again); err != nil {
			t.Fatalf("%v cannot be decoded again: %v", m, err)
		}
		if !proto.Equal(m, again) {
			t.Errorf("decoded again as %v, was %v", again, m)
		}
		if second := write(t, again); !bytes.Equal(first, second) {
			t.Errorf("encoded as %x, then as %x", first, second)
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
		t.Fatalf("%v cannot be encoded: %v", m, err)
	}
	return wire
}

// show returns all forms in which a message may be shown.
func show(m proto.Message) string {
	text, err := json.Marshal(m)
	return fmt.Sprintf("%v\n%+v\n%s\n%v\n%s\n%s\n%s\n%s %v",
		m, m, m, envelope(m), untimed(logText(m)), untimed(logJSON(m)), untimed(logText(envelope(m))), text, err)
}

// untimed removes the time of a log record.
func untimed(line string) string {
	_, rest, _ := strings.Cut(line, "sent")
	return rest
}

// withoutSecrets returns the same message with another hold id, and without unknown fields.
func withoutSecrets(m proto.Message) proto.Message {
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
