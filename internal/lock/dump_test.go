package lock_test

import (
	"fmt"
	"reflect"
	"strings"
)

// dump formats a value with all that it refers to, so two dumps differ if anything reachable from the value has
// changed. Of a pointer in an interface, such as a Ref, it writes the address only.
func dump(value any) string {
	var text strings.Builder
	write(&text, reflect.ValueOf(value))
	return text.String()
}

func write(text *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		text.WriteByte('{')
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			text.WriteString(v.Type().Field(i).Name)
			text.WriteByte(':')
			write(text, v.Field(i))
			text.WriteByte(' ')
		}
		text.WriteByte('}')
	case reflect.Slice:
		text.WriteByte('[')
		for i := range v.Len() {
			write(text, v.Index(i))
			text.WriteByte(' ')
		}
		text.WriteByte(']')
	case reflect.Pointer:
		if !v.IsNil() {
			write(text, v.Elem())
		}
	case reflect.Interface:
		if e := v.Elem(); e.Kind() == reflect.Pointer {
			fmt.Fprintf(text, "%#x", e.Pointer())
		} else {
			fmt.Fprint(text, e)
		}
	default:
		fmt.Fprint(text, v)
	}
}
