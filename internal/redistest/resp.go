//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// value is one value of the Redis protocol, RESP2 or RESP3.
type value struct {
	kind  byte   // its first byte: + - : $ * _ , # ( ! = % ~ >
	null  bool   // $-1, *-1 or _
	str   string // of a kind that holds no others
	elems []value
}

// frame is one whole request, reply or push, together with its bytes.
type frame struct {
	value
	raw []byte
}

// words are the strings directly inside an array: a command's name and arguments.
func (v value) words() []string {
	words := make([]string, len(v.elems))
	for i, e := range v.elems {
		words[i] = e.str
	}
	return words
}

// text renders a value for people and for simple comparisons: strings and numbers
// as they are, an error with its "-" before it, null as "(nil)", and what holds
// others as "[a b c]".
func (v value) text() string {
	switch {
	case v.null:
		return "(nil)"
	case v.kind == '-' || v.kind == '!':
		return "-" + v.str
	case isAggregate(v.kind):
		texts := make([]string, len(v.elems))
		for i, e := range v.elems {
			texts[i] = e.text()
		}
		return "[" + strings.Join(texts, " ") + "]"
	default:
		return v.str
	}
}

func isAggregate(kind byte) bool {
	return strings.IndexByte("*%~>", kind) >= 0
}

// frameReader reads frames off a connection.
type frameReader struct {
	in  *bufio.Reader
	raw []byte // of the frame that is being read
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 16<<10)}
}

// protocolError is what the reader says of bytes that are not the Redis protocol
// as clients and servers speak it: no inline commands, no streamed values.
type protocolError string

func (e protocolError) Error() string {
	return "not the Redis protocol: " + string(e)
}

// next reads one frame. The error is io.EOF at the end of the connection, also
// amidst a frame.
func (r *frameReader) next() (frame, error) {
	r.raw = nil
	v, err := r.value()
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return frame{value: v, raw: r.raw}, err
}

func (r *frameReader) value() (value, error) {
	line, err := r.line()
	if err != nil {
		return value{}, err
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', '-', ':', ',', '#', '(':
		return value{kind: kind, str: rest}, nil
	case '_':
		return value{kind: kind, null: true}, nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < -1 {
		return value{}, protocolError(fmt.Sprintf("%.40q", line))
	}
	v := value{kind: kind, null: n == -1}
	switch kind {
	case '$', '!', '=':
		if n >= 0 {
			v.str, err = r.blob(n)
		}
	case '*', '~', '>':
		v.elems, err = r.values(n)
	case '%':
		v.elems, err = r.values(2 * n)
	case '|': // attributes: they belong to the value that follows
		if _, err = r.values(2 * n); err == nil {
			return r.value()
		}
	default:
		err = protocolError(fmt.Sprintf("%.40q", line))
	}
	return v, err
}

func (r *frameReader) values(n int) ([]value, error) {
	var vs []value
	for range n {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// line reads a line, which is never empty, and gives it without its end.
func (r *frameReader) line() (string, error) {
	b, err := r.in.ReadBytes('\n')
	r.raw = append(r.raw, b...)
	if err != nil {
		return "", err
	}
	line, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok || line == "" {
		return "", protocolError(fmt.Sprintf("%.40q", b))
	}
	return line, nil
}

// blob reads n bytes and the line end after them.
func (r *frameReader) blob(n int) (string, error) {
	from := len(r.raw)
	r.raw = append(r.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(r.in, r.raw[from:]); err != nil {
		return "", err
	}
	if end := string(r.raw[from+n:]); end != "\r\n" {
		return "", protocolError(fmt.Sprintf("%q after %d bytes", end, n))
	}
	return string(r.raw[from : from+n]), nil
}

// request renders a command as a client sends it.
func request(words ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}
