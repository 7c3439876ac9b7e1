package messages

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

func TestRegisteredPath(t *testing.T) {
	const want = "lockkeeper/v1/lockkeeper.proto"
	if got := File_lockkeeper_v1_lockkeeper_proto.Path(); got != want {
		t.Errorf("registered as %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range filledMessages(t) {
		t.Run(name(want), func(t *testing.T) {
			wire, err := proto.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got := want.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(wire, got); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestHoldIDNotShown(t *testing.T) {
	const secret = "value of hold_id" // as set by fill
	formats := []struct {
		name string
		// placeholder reports whether a hold id is replaced, not just left out.
		placeholder bool
		format      func(proto.Message) string
	}{
		{"%v", true, func(m proto.Message) string { return fmt.Sprintf("%v", m) }},
		{"%+v", true, func(m proto.Message) string { return fmt.Sprintf("%+v", m) }},
		{"%s", true, func(m proto.Message) string { return fmt.Sprintf("%s", m) }},
		{"%v in envelope", true, func(m proto.Message) string { return fmt.Sprintf("%v", envelope(m)) }},
		{"slog text", true, func(m proto.Message) string { return logText(m) }},
		{"slog JSON", true, func(m proto.Message) string { return logJSON(m) }},
		{"slog text in envelope", true, func(m proto.Message) string { return logText(envelope(m)) }},
		{"slog JSON in envelope", false, func(m proto.Message) string { return logJSON(envelope(m)) }},
	}
	carriers := 0
	for _, m := range filledMessages(t) {
		holdID := m.ProtoReflect().Descriptor().Fields().ByName("hold_id") != nil
		if holdID {
			carriers++
		}
		for _, f := range formats {
			t.Run(name(m)+"/"+f.name, func(t *testing.T) {
				before := proto.Clone(m)
				got := f.format(m)
				if strings.Contains(got, secret) {
					t.Errorf("hold id shown: %s", got)
				}
				if f.placeholder && strings.Contains(got, "[redacted]") != holdID {
					t.Errorf("want [redacted] if there is a hold id: %s", got)
				}
				if !strings.Contains(got, "value of name") && !strings.Contains(got, "value of host") {
					t.Errorf("neither a lock's name nor a host shown: %s", got)
				}
				if !proto.Equal(m, before) {
					t.Error("formatting changed the message")
				}
			})
		}
	}
	if carriers != 4 {
		t.Errorf("%d messages have a hold id, want 4", carriers)
	}
}

func TestRedacted(t *testing.T) {
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
		{"nested", nested, `[type.googleapis.com/lockkeeper.v1.Release]:{hold_id:"[redacted]"}`},
		{"unknown field", unknown, "lock:{}"},
		{"invalid UTF-8", &Release{Lock: &Lock{Name: "\xff"}, HoldId: "\xff"}, `lock:{name:"\xff"}hold_id:"[redacted]"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// prototext puts in spaces at random.
			if got := strings.ReplaceAll(redacted(test.m), " ", ""); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// filledMessages returns one message of every type, with every field set.
func filledMessages(t *testing.T) []proto.Message {
	t.Helper()
	var all []proto.Message
	descriptors := File_lockkeeper_v1_lockkeeper_proto.Messages()
	for i := range descriptors.Len() {
		messageType, err := protoregistry.GlobalTypes.FindMessageByName(descriptors.Get(i).FullName())
		if err != nil {
			t.Fatal(err)
		}
		m := messageType.New()
		fill(t, m)
		all = append(all, m.Interface())
	}
	return all
}

// fill sets every field of m, strings to "value of " and the field's name.
func fill(t *testing.T, m protoreflect.Message) {
	t.Helper()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.IsList() {
			list := m.Mutable(field).List()
			if field.Kind() == protoreflect.MessageKind {
				list.AppendMutable() // left empty: a Lock has Locks as its members
			} else {
				list.Append(protoreflect.ValueOfInt64(1))
			}
			continue
		}
		switch field.Kind() {
		case protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString("value of "+string(field.Name())))
		case protoreflect.MessageKind:
			fill(t, m.Mutable(field).Message())
		case protoreflect.EnumKind:
			values := field.Enum().Values()
			m.Set(field, protoreflect.ValueOfEnum(values.Get(values.Len()-1).Number()))
		case protoreflect.BoolKind:
			m.Set(field, protoreflect.ValueOfBool(true))
		case protoreflect.Int32Kind:
			m.Set(field, protoreflect.ValueOfInt32(1))
		case protoreflect.Int64Kind:
			m.Set(field, protoreflect.ValueOfInt64(1))
		case protoreflect.Uint32Kind:
			m.Set(field, protoreflect.ValueOfUint32(1))
		default:
			t.Fatalf("%s: cannot fill a %s", field.FullName(), field.Kind())
		}
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

func name(m proto.Message) string {
	return string(m.ProtoReflect().Descriptor().Name())
}
