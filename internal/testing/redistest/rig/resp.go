package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Value is one value of the Redis protocol, RESP2 or RESP3.
type Value struct {
	Kind  byte   // its first byte: + - : $ * _ , # ( ! = % ~ >; of every null _
	Str   string // of a kind that holds no others
	Elems []Value
}

// Words are the strings directly inside an array: a command's name and arguments.
func (v Value) Words() []string {
	words := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		words[i] = e.Str
	}
	return words
}

// Map has the words of an array in pairs.
func (v Value) Map() map[string]string {
	pairs, words := map[string]string{}, v.Words()
	for i := 0; i+1 < len(words); i += 2 {
		pairs[words[i]] = words[i+1]
	}
	return pairs
}

// Text renders a value for error texts and simple comparisons: strings and numbers as they are, an error with a "-"
// before it, null as "(nil)", arrays and the like as "[a b c]".
func (v Value) Text() string {
	switch v.Kind {
	case '_':
		return "(nil)"
	case '-', '!':
		return "-" + v.Str
	case '*', '%', '~', '>':
		texts := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			texts[i] = e.Text()
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	return v.Str
}

// event is the kind of a push, such as "message" or "subscribe", or of its RESP2
// equivalent.
func (v Value) event() string {
	if (v.Kind == '>' || v.Kind == '*') && len(v.Elems) > 0 {
		return v.Elems[0].Str
	}
	return ""
}

// Frame is one whole request, reply or push, together with its bytes.
type Frame struct {
	Value
	raw []byte
}

// Reader reads frames off a connection.
type Reader struct {
	in  *bufio.Reader
	raw []byte // of the frame that is being read
}

// NewReader returns a Reader of a connection.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 16<<10)}
}

// errProtocol means that bytes are not the Redis protocol. Inline commands, streamed values
// and attributes are not supported.
var errProtocol = errors.New("not the Redis protocol")

// Next reads one frame.
func (r *Reader) Next() (Frame, error) {
	r.raw = nil
	v, err := r.value()
	return Frame{Value: v, raw: r.raw}, err
}

// some reads the bytes that have arrived, without parsing them.
func (r *Reader) some() (Frame, error) {
	if _, err := r.in.Peek(1); err != nil {
		return Frame{}, err
	}
	raw := make([]byte, r.in.Buffered())
	_, err := io.ReadFull(r.in, raw)
	return Frame{raw: raw}, err
}

func (r *Reader) value() (Value, error) {
	line, err := r.in.ReadBytes('\n')
	if err != nil {
		return Value{}, err
	}
	r.raw = append(r.raw, line...)
	v := Value{Kind: line[0], Str: strings.TrimRight(string(line[1:]), "\r\n")}
	if strings.IndexByte("+-:,#(_", v.Kind) >= 0 {
		return v, nil
	}
	n, err := strconv.Atoi(v.Str)
	switch {
	case err != nil || strings.IndexByte("$!=*~>%", v.Kind) < 0:
		return v, fmt.Errorf("%w: %.40q", errProtocol, line)
	case n < 0:
		return Value{Kind: '_'}, nil
	}
	switch v.Kind {
	case '$', '!', '=':
		blob := make([]byte, n+2)
		_, err = io.ReadFull(r.in, blob)
		r.raw, v.Str = append(r.raw, blob...), string(blob[:n])
		return v, err
	case '%':
		n *= 2
	}
	for range n {
		e, err := r.value()
		if err != nil {
			return v, err
		}
		v.Elems = append(v.Elems, e)
	}
	return v, nil
}
