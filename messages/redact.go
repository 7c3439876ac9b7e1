package messages

import (
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// redacted formats m on one line, with "[redacted]" instead of secrets. The
// generated String and LogValue methods call it.
func redacted(m proto.Message) string {
	if m.ProtoReflect().IsValid() { // not a nil pointer
		m = proto.Clone(m)
		err := protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
			if m, ok := p.Index(-1).Value.Interface().(protoreflect.Message); ok {
				redact(m)
			}
			return nil
		})
		if err != nil {
			return "<" + err.Error() + ">"
		}
	}
	return prototext.MarshalOptions{}.Format(m)
}

// redact overwrites the fields of m that are set and marked with debug_redact.
// It removes unknown fields: the newer peer that sent them may have marked
// them.
func redact(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		options := field.Options().(*descriptorpb.FieldOptions)
		if options.GetDebugRedact() {
			// All such fields are strings, or lists of strings; the generator ensures that.
			if hidden := protoreflect.ValueOfString("[redacted]"); field.IsList() {
				list := m.NewField(field)
				list.List().Append(hidden)
				m.Set(field, list)
			} else {
				m.Set(field, hidden)
			}
		}
		return true
	})
}
