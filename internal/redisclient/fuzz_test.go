package redisclient

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// For every well-formed reply to a script, and for a part of one before the connection ends, each
// call gets one Reply: with the values if the script can have given them, otherwise with an error.
func FuzzReplies(f *testing.F) {
	for _, parts := range []string{
		"_", "n", ":", "+", "*:$", "*::++", "*", "-", "!", "*-", "*a+", "*::::++++", "~:", "_", "*_:", "a", "b", "c", "d", "e", "f", "g",
	} {
		f.Add(parts, int64(-2), "text", uint16(0), uint8(3))
	}
	f.Add("*:+", int64(1<<62), "redisson\r\n", uint16(7), uint8(0))
	f.Add("*:::", int64(2), "", uint16(0), uint8(1))       // for two leases
	f.Add("*:+", int64(5), "other", uint16(0), uint8(128)) // as acquire returns
	f.Add("*:", int64(5), "", uint16(0), uint8(128))
	for _, parts := range []string{"_", "n", "+", "*", "*::", "*+", "*-:", "*::::"} { // for a number
		f.Add(parts, int64(1), "OK", uint16(0), uint8(192))
	}
	f.Add("-", int64(0), "NOSCRIPT no matching script", uint16(0), uint8(1))
	f.Add("-", int64(0), "WRONGTYPE of key", uint16(0), uint8(2))
	f.Add("-", int64(0), "MOVED 1 127.0.0.1:1", uint16(0), uint8(2))
	server := redistest.NewFakeServer(f)
	r := open(f, redistest.Connect(f, server.URL()))
	f.Fuzz(func(t *testing.T, parts string, number int64, text string, cut uint16, renewals uint8) {
		raw, want, shape := answer(parts[:min(len(parts), 9)], number, text)
		server.Answer(raw, int(cut))
		whole := cut == 0 || int(cut) >= len(raw)
		script := lua("return 1", shape)
		switch {
		case renewals >= 192:
			script.Reply = scripts.Release.Reply
		case renewals >= 128:
			script.Reply = scripts.Acquire.Reply
		}
		fits := whole && want.Err == nil && shape.Numbers == script.Reply.Numbers && shape.Texts == script.Reply.Texts
		if want.Nil {
			fits = whole && script.Reply.Nil
		}

		deadline := time.Now().Add(2 * time.Second)
		in := make(answers, 4)
		r.Run(Call{Script: script, Keys: []string{"k"}, Deadline: deadline, To: in})
		got := in.next(t)
		switch {
		case fits && got != want:
			t.Errorf("%q gave %+v, want %+v", raw, got, want)
		case !fits && got.Err == nil:
			t.Errorf("%q, cut at %d, gave %+v, where %+v was expected", raw, cut, got, script.Reply)
		case got.Err != nil && got.Err.Error() == "":
			t.Errorf("%q: the error has no text", raw)
		}

		n := int(renewals%5) + 1
		many := make(answers, n)
		for i := range n {
			r.Renew(Renewal{Script: script, Key: "k", Owner: "o", Lease: time.Second, Immediate: i == n-1, Deadline: deadline, To: many, Seq: uint64(i)})
		}
		for range n {
			if got := many.next(t); got.Err == nil && (!whole || strings.TrimLeft(parts, "*~") != strings.Repeat(":", n)) {
				t.Errorf("%q renewed %d leases: %+v", raw, n, got)
			}
		}
		if len(in)+len(many) > 0 {
			t.Error("a call got two replies")
		}
	})
}

// answers receives the replies to calls.
type answers chan Reply

func (a answers) Replied(_ uint64, reply Reply) { a <- reply }

func (a answers) next(t *testing.T) Reply {
	t.Helper()
	select {
	case reply := <-a:
		return reply
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
		panic("not reached")
	}
}

// odd are values that no script returns.
var odd = []string{
	"*1\r\n*0\r\n", "%1\r\n+k\r\n:1\r\n", "~1\r\n_\r\n", "#t\r\n", ",1.5\r\n", "(12345678901234567890\r\n", "=7\r\ntxt:abc\r\n",
}

// answer builds a reply from the parts that the fuzzer names, and returns the Reply that is expected for it: a
// script returns only a few numbers and texts, in one array at most.
func answer(parts string, number int64, text string) (raw string, want Reply, shape scripts.Shape) {
	line := strings.Map(func(r rune) rune { return max(r, ' ') }, text)
	switch {
	case parts != "" && strings.Contains("*~", parts[:1]):
		raw, parts = fmt.Sprintf("%s%d\r\n", parts[:1], len(parts)-1), parts[1:]
	case parts == "_" || parts == "n":
		return map[string]string{"_": "_\r\n", "n": "$-1\r\n"}[parts], Reply{Nil: true}, scripts.Shape{Nil: true}
	default:
		parts = (parts + ":")[:1]
	}
	for _, part := range []byte(parts) {
		switch {
		case part == ':' && shape.Numbers < len(want.N):
			want.N[shape.Numbers] = number
			shape.Numbers++
		case (part == '+' || part == '$') && shape.Texts < len(want.S):
			want.S[shape.Texts] = map[byte]string{'+': line, '$': text}[part]
			shape.Texts++
		default:
			want.Err = errUnexpectedReply
		}
		switch part {
		case ':':
			raw += fmt.Sprintf(":%d\r\n", number)
		case '+', '-':
			raw += fmt.Sprintf("%c%s\r\n", part, line)
		case '$', '!':
			raw += fmt.Sprintf("%c%d\r\n%s\r\n", part, len(text), text)
		case '_':
			raw += "_\r\n"
		default:
			raw += odd[int(part)%len(odd)]
		}
	}
	return raw, want, shape
}
