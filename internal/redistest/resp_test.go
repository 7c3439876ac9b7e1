//go:build unix

package redistest

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFrameReader(t *testing.T) {
	frames := []struct{ raw, text string }{
		{"+OK\r\n", "OK"},
		{"-ERR no\r\n", "-ERR no"},
		{":-7\r\n", "-7"},
		{"$5\r\na\r\nbc\r\n", "a\r\nbc"},
		{"$0\r\n\r\n", ""},
		{"$-1\r\n", "(nil)"},
		{"*-1\r\n", "(nil)"},
		{"_\r\n", "(nil)"},
		{"*0\r\n", "[]"},
		{"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+b\r\n", "[a [1 (nil)] b]"},
		{"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "[a 1 b [2]]"},
		{"~2\r\n:1\r\n:2\r\n", "[1 2]"},
		{">3\r\n+message\r\n$1\r\nc\r\n$1\r\nm\r\n", "[message c m]"},
		{"#t\r\n", "t"},
		{",1.5\r\n", "1.5"},
		{"(12345678901234567890\r\n", "12345678901234567890"},
		{"!5\r\nERR x\r\n", "-ERR x"},
		{"=7\r\ntxt:abc\r\n", "txt:abc"},
		{"|1\r\n+ttl\r\n%1\r\n+a\r\n:1\r\n*1\r\n|1\r\n+x\r\n:1\r\n:5\r\n", "[5]"},
		{string(request("GET", "k")), "[GET k]"},
	}
	var all strings.Builder
	for _, f := range frames {
		all.WriteString(f.raw)
	}
	for name, in := range map[string]io.Reader{
		"at once":      strings.NewReader(all.String()),
		"byte by byte": iotest.OneByteReader(strings.NewReader(all.String())),
	} {
		t.Run(name, func(t *testing.T) {
			r := newFrameReader(in)
			for _, want := range frames {
				f, err := r.next()
				if err != nil || string(f.raw) != want.raw || f.text() != want.text {
					t.Fatalf("%q: raw %q, text %q, %v", want.raw, f.raw, f.text(), err)
				}
			}
			if _, err := r.next(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

func TestFrameReaderEndsAmidstAFrame(t *testing.T) {
	for _, raw := range []string{"*2", "*2\r\n", "*2\r\n$3\r\n", "*2\r\n$3\r\nGE", "*2\r\n$3\r\nGET\r", "|1\r\n+a\r\n:1\r\n"} {
		if f, err := newFrameReader(strings.NewReader(raw)).next(); err != io.EOF {
			t.Errorf("%q: %v, %v", raw, f, err)
		}
	}
}

func TestFrameReaderRefuses(t *testing.T) {
	for _, raw := range []string{"PING\r\n", "\r\n", "+OK\n", "$x\r\n", "$-2\r\n", "$?\r\n", "$1\r\nabc\r\n", "*1\r\n@1\r\n"} {
		_, err := newFrameReader(strings.NewReader(raw)).next()
		if bad := protocolError(""); !errors.As(err, &bad) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
