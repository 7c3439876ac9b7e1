package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// value is one value of the Redis protocol, RESP2 or RESP3.
type value struct {
	kind  byte   // its first byte: + - : $ * _ , # ( ! = % ~ >; of every null _
	str   string // of a kind that holds no others
	elems []value
}

// words are the strings directly inside an array: a command's name and arguments.
func (v value) words() []string {
	words := make([]string, len(v.elems))
	for i, e := range v.elems {
		words[i] = e.str
	}
	return words
}

// text renders a value for error texts and simple comparisons, see [Held.Release].
func (v value) text() string {
	switch v.kind {
	case '_':
		return "(nil)"
	case '-', '!':
		return "-" + v.str
	case '*', '%', '~', '>':
		texts := make([]string, len(v.elems))
		for i, e := range v.elems {
			texts[i] = e.text()
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	return v.str
}

// event is the kind of a push, such as "message" or "subscribe", or of its RESP2
// equivalent.
func (v value) event() string {
	if (v.kind == '>' || v.kind == '*') && len(v.elems) > 0 {
		return v.elems[0].str
	}
	return ""
}

// frame is one whole request, reply or push, together with its bytes.
type frame struct {
	value
	raw []byte
}

// frameReader reads frames off a connection.
type frameReader struct {
	in  *bufio.Reader
	raw []byte // of the frame that is being read
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 16<<10)}
}

// errProtocol means that bytes are not the Redis protocol. Inline commands, streamed values
// and attributes are not supported.
var errProtocol = errors.New("not the Redis protocol")

// next reads one frame.
func (r *frameReader) next() (frame, error) {
	r.raw = nil
	v, err := r.value()
	return frame{value: v, raw: r.raw}, err
}

// some reads the bytes that have arrived, without parsing them.
func (r *frameReader) some() (frame, error) {
	raw := make([]byte, 16<<10)
	n, err := r.in.Read(raw)
	return frame{raw: raw[:n]}, err
}

func (r *frameReader) value() (value, error) {
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		return value{}, err
	}
	r.raw = append(r.raw, line...)
	v := value{kind: line[0], str: strings.TrimRight(string(line[1:]), "\r\n")}
	if strings.IndexByte("+-:,#(_", v.kind) >= 0 {
		return v, nil
	}
	n, err := strconv.Atoi(v.str)
	switch {
	case err != nil || strings.IndexByte("$!=*~>%", v.kind) < 0:
		return v, fmt.Errorf("%w: %.40q", errProtocol, line)
	case n < 0:
		return value{kind: '_'}, nil
	}
	switch v.kind {
	case '$', '!', '=':
		blob := make([]byte, n+2)
		_, err = io.ReadFull(r.in, blob)
		r.raw, v.str = append(r.raw, blob...), string(blob[:n])
		return v, err
	case '%':
		n *= 2
	}
	for range n {
		e, err := r.value()
		if err != nil {
			return v, err
		}
		v.elems = append(v.elems, e)
	}
	return v, nil
}
