package redisio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// The names that are derived from a lock's lie in its slot as far as Redisson's rule
// promises it, belong to no other name, and tell it.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"", "n", "a{b}c", "a{b", "a}b", "{}x", "a{}b{c}", "}{", "{{a}}", "{a}{b}", "ключ", "a b:c", "\x00\xff", "{\xff}",
		"redisson_lock__channel:{n}", strings.Repeat("long", 128),
	} {
		f.Add(name, "n")
	}
	f.Add("a", "{a}")
	f.Add("a:", "a")
	f.Fuzz(func(t *testing.T, name, other string) {
		derive := map[string]func(string) string{
			"redisson_lock__channel": Channel, "redisson_lock_token": Token, "redisson_lock_queue": Queue,
			"redisson_lock_timeout": Timeouts, "redisson_rwlock": ReadWriteChannel, "lockkeeper_writer": Writer,
		}
		// Redis looks for the first { and the next } behind it, with something between them.
		_, behind, opens := strings.Cut(name, "{")
		tag, _, closes := strings.Cut(behind, "}")
		sure := opens && closes && tag != "" || !opens && !strings.Contains(name, "}") && name != ""
		slot := Slot(name)
		if slot >= 16384 {
			t.Errorf("the slot of %q is %d", name, slot)
		}
		if sure && opens && slot != Slot(tag) {
			t.Errorf("the slot of %q is not that of its tag", name)
		}
		for p, f := range derive {
			derived := f(name)
			want := p + ":{" + name + "}"
			if opens {
				want = p + ":" + name
			}
			if derived != want {
				t.Errorf("%q, want %q", derived, want)
			}
			if sure && Slot(derived) != slot {
				t.Errorf("%q is not in the slot of %q", derived, name)
			}
			if utf8.ValidString(derived) != utf8.ValidString(name) {
				t.Errorf("%q was made of %q", derived, name)
			}
			// Only "n" and "{n}" share what belongs to them, which is Redisson's rule.
			if f(other) == derived && other != name && "{"+other+"}" != name && other != "{"+name+"}" {
				t.Errorf("%q belongs to %q and to %q", derived, name, other)
			}
		}
		lease := Holds(name) + ":field:rwlock_timeout:1"
		if sure && Slot(lease) != slot {
			t.Errorf("%q is not in the slot of %q", lease, name)
		}
	})
}

// However wrong a URL is, its error quotes nothing of it that may be a password; and one
// that can be used is one of Redis.
func FuzzURL(f *testing.F) {
	for _, url := range []string{
		"redis://127.0.0.1:6379", "rediss://host", "unix:///run/redis.sock?db=2", "valkey://[::1]:1/3", "redis://",
		"", "localhost:6379", "http://host:6379", "redis://host:port", "redis://host/x", "redis://host/1/2", "redis:host",
		"redis://host?dial_timeout=1", "redis://host?addr=a:1&addr=b:2&master_set=m", "redis://user:p/w@host", "redis://%", "\x00",
		"redis://host?db=1&db=x", "redis://host?write_timeout=-1s", "rediss://host?skip_verify=maybe", "REDIS://HOST", "//host", "@",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		options, err := parse(url)
		if err != nil {
			text := err.Error()
			if !strings.Contains(text, "redis URL cannot be used: ") || !strings.Contains(text, "redis[s]://") {
				t.Errorf("%q: the error does not say what is expected: %v", url, err)
			}
			if len(url) > len("redis://") && strings.Contains(text, url) && !strings.Contains(expected, url) {
				t.Errorf("%q is quoted in: %v", url, err)
			}
			return
		}
		scheme, _, _ := strings.Cut(url, ":")
		if !slices.Contains([]string{"redis", "rediss", "valkey", "valkeys", "unix"}, strings.ToLower(scheme)) {
			t.Errorf("%q was taken for a Redis URL", url)
		}
		if len(options.InitAddress) == 0 {
			t.Errorf("%q: no address in %+v", url, options)
		}
		if (options.TLSConfig != nil) != (strings.ToLower(scheme) == "rediss" || strings.ToLower(scheme) == "valkeys") {
			t.Errorf("%q: TLS is %v", url, options.TLSConfig != nil)
		}
	})
}

const expected = "redis URL cannot be used: redis[s]://[user[:password]@]host[:port][/database number][?option=value], with special characters percent-encoded"

// A password is never told: not by the error, and not by the addresses, which the error
// of a connection that fails does tell.
func FuzzPassword(f *testing.F) {
	for _, s := range [][5]string{
		{"redis", "user", "", "", "host:6379"}, {"redis", "", "12#", "", "host:1"}, {"redis", "user", "12/", "/x", "host"},
		{"redis", "user", "a@127.0.0.1:1?", "", "host"}, {"unix", "user", "12/", "", "/socket"}, {"http", "u", "", "", "h"},
		{"redis", "user", "%", "%zz", "host"}, {"redis", "user", "", "", "ho st:port"}, {"redis", "user", "a@", "/b?c#d", "[::1"},
		{"redis", "user", "", "", "host/1?addr=other:2&client_name=x"}, {"", "user", "", "", "host"}, {"redis", "u", "\\", "\x00", "host"},
		{"redis", "u", "?addr=", ":1", "host"}, {"redis", "u", "?client_name=", "", "host"}, {"redis", "u", "1#", "", "host"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], false)
		f.Add(s[0], s[1], s[2], s[3], s[4], true)
	}
	f.Add("redis", "host/user", "", "", "h", true)
	f.Add("redis", "host?addr=", "", "", "h:1", true)
	const secret = "s3cret"
	f.Fuzz(func(t *testing.T, scheme, user, before, after, host string, encoded bool) {
		if rest := scheme + user + before + after + host + expected; strings.Contains(rest, "s3") || strings.Contains(rest, "cret") {
			return
		}
		at := "@"
		if encoded { // too much of the URL was
			at = "%40"
		}
		url := scheme + "://" + user + ":" + before + secret + after + at + host
		options, err := parse(url)
		shown := fmt.Sprint(options.InitAddress)
		if err != nil {
			shown = err.Error()
		}
		if strings.Contains(shown, "s3") || strings.Contains(shown, "cret") {
			t.Errorf("%q: the password is told: %s", url, shown)
		}
		if err == nil && !encoded && !strings.Contains(options.Password, secret) && !strings.Contains(options.Username, secret) {
			t.Errorf("%q: the password got lost: %+v", url, options)
		}
	})
}

// Whatever well-formed reply a script gets, or a part of one before the connection ends,
// each call is answered once: with the reply if it looks like the script's, else with an error.
func FuzzReplies(f *testing.F) {
	for _, tree := range []string{
		"_", "n", ":\x05", "*\x02:\x05+\x03abc", "*\x04:\x00:\x01+\x01a+\x01b", "*\x00", "-\x03ERR", "*\x01-\x03ERR", "*\x02*\x01:\x01+\x00",
		"+\x02OK", "*\x08:\x01:\x02:\x03:\x04+\x01a+\x01b+\x01c+\x01d", "%\x01+\x01k:\x01", "~\x01:\x01", "#\x01", ",\x03", "(\x09", "=\x04", "!\x03ERR",
		"*\x02_:\x01", "|\x01+\x01k:\x01:\x05", "$\x00",
	} {
		f.Add([]byte(tree), int64(-2), "text", uint16(0), uint8(3))
	}
	f.Add([]byte("*\x02:\x05+\x03abc"), int64(1<<62), "redisson\r\n", uint16(7), uint8(0))
	f.Add([]byte("*\x03:\x01:\x01:\x01"), int64(2), "", uint16(0), uint8(1))      // for two leases
	f.Add([]byte("*\x02:\x05+\x03abc"), int64(5), "other", uint16(0), uint8(128)) // as acquire gives
	f.Add([]byte("*\x01:\x05"), int64(5), "", uint16(0), uint8(128))
	f.Add([]byte("-\x03"), int64(0), "NOSCRIPT no matching script", uint16(0), uint8(1))
	f.Add([]byte("-\x03"), int64(0), "WRONGTYPE of key", uint16(0), uint8(2))
	f.Add([]byte("-\x03"), int64(0), "MOVED 1 127.0.0.1:1", uint16(0), uint8(2))
	s := newScripted(f)
	client := connect(f, "redis://"+s.addr)
	r := open(f, client)
	f.Fuzz(func(t *testing.T, tree []byte, number int64, text string, cut uint16, renewals uint8) {
		b := builder{left: tree, number: number, text: text}
		reply := b.build(0)
		s.answer(b.out.String(), int(cut))
		whole := cut == 0 || int(cut) >= b.out.Len()
		script := lua("return 1", reply.Shape)
		if renewals >= 128 {
			script.Reply = scripts.Acquire.Reply
		}
		fits := whole && reply.Err == nil && !reply.Odd
		if reply.Nil {
			fits = fits && script.Reply.Nil
		} else {
			fits = fits && script.Reply.Numbers == reply.Shape.Numbers && script.Reply.Texts == reply.Shape.Texts
		}

		deadline := time.Now().Add(2 * time.Second)
		in := make(answers, 4)
		r.Run(Call{Script: script, Keys: []string{"k"}, Deadline: deadline, To: in, Seq: 7})
		got := in.next(t, 7)
		switch {
		case fits && (got.Err != nil || got != reply.Reply):
			t.Errorf("%q gave %+v, want %+v", b.out.String(), got, reply.Reply)
		case !fits && got.Err == nil:
			t.Errorf("%q, cut at %d, gave %+v, where %+v was expected", b.out.String(), cut, got, script.Reply)
		case got.Err != nil && got.Err.Error() == "":
			t.Errorf("%q: the error says nothing", b.out.String())
		}

		n := int(renewals%5) + 1
		many := make(answers, n)
		for i := range n {
			r.Renew(Renewal{Script: script, Key: "k", Owner: "o", Lease: time.Second, Now: i == n-1, Deadline: deadline, To: many, Seq: uint64(i)})
		}
		for range n {
			if got := many.next(t, anySeq); got.Err == nil && (!whole || reply.Length != n) {
				t.Errorf("%q renewed %d leases: %+v", b.out.String(), n, got)
			}
		}
		if len(in)+len(many) > 0 {
			t.Error("a call was answered twice")
		}
	})
}

// answers takes the answers to calls.
type answers chan answered

type answered struct {
	Reply
	seq uint64
}

func (a answers) Replied(seq uint64, reply Reply) { a <- answered{reply, seq} }

const anySeq = 1 << 63

func (a answers) next(t *testing.T, seq uint64) Reply {
	t.Helper()
	select {
	case got := <-a:
		if seq != anySeq && got.seq != seq {
			t.Errorf("answered as %d, want %d", got.seq, seq)
		}
		return got.Reply
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
		panic("not reached")
	}
}

// builder makes a reply of what the fuzzer thinks up: a type and a length at a time.
type builder struct {
	left   []byte
	number int64
	text   string
	out    strings.Builder
}

// expectation is what a reply is to be read as.
type expectation struct {
	Reply
	// Length is that of an array; of anything else -1.
	Length int
	// Shape is what a script gives that gives such a reply; of Odd ones, which are made
	// of more than a few numbers and strings in one array at most, there is none.
	Shape scripts.Shape
	Odd   bool
}

func (b *builder) next() (kind byte, n int) {
	kind, n = ':', 1
	if len(b.left) > 0 {
		kind, b.left = b.left[0], b.left[1:]
	}
	if len(b.left) > 0 {
		n, b.left = int(b.left[0]%9), b.left[1:]
	}
	return kind, n
}

// line is the text as one line.
func (b *builder) line() string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '.'
		}
		return r
	}, b.text)
}

func (b *builder) build(depth int) (e expectation) {
	e.Length = -1
	kind, n := b.next()
	switch kind {
	case '-':
		fmt.Fprintf(&b.out, "-%s\r\n", b.line())
		e.Err = &Error{err: errors.New(b.line())}
	case '!':
		fmt.Fprintf(&b.out, "!%d\r\n%s\r\n", len(b.text), b.text)
		e.Err = &Error{err: errors.New(b.text)}
	case '+':
		e.S[0], e.Shape.Texts = b.line(), 1
		fmt.Fprintf(&b.out, "+%s\r\n", e.S[0])
	case '$':
		e.S[0], e.Shape.Texts = b.text, 1
		fmt.Fprintf(&b.out, "$%d\r\n%s\r\n", len(b.text), b.text)
	case '_', 'n':
		e.Nil, e.Shape.Nil = true, true
		if kind == '_' {
			b.out.WriteString("_\r\n")
		} else {
			b.out.WriteString([]string{"$-1\r\n", "*-1\r\n"}[n%2])
		}
	case ',', '(', '=', '#':
		e.Odd = true
		b.out.WriteString(map[byte]string{',': ",1.5\r\n", '(': "(12345678901234567890\r\n", '=': "=7\r\ntxt:abc\r\n", '#': "#t\r\n"}[kind])
	case '*', '~', '%':
		if depth > 2 {
			n, b.left = 0, nil
		}
		fmt.Fprintf(&b.out, "%c%d\r\n", kind, n)
		e.Odd = kind == '%'
		if kind == '%' {
			n *= 2
		}
		e.Length = n
		for range n {
			start := b.out.Len()
			one := b.build(depth + 1)
			switch is := b.out.String()[start]; {
			case is == ':' && e.Shape.Numbers < len(e.N):
				e.N[e.Shape.Numbers] = one.N[0]
				e.Shape.Numbers++
			case (is == '+' || is == '$') && !one.Nil && e.Shape.Texts < len(e.S):
				e.S[e.Shape.Texts] = one.S[0]
				e.Shape.Texts++
			default:
				e.Odd = true
			}
		}
	default:
		e.N[0], e.Shape.Numbers = b.number>>n, 1
		fmt.Fprintf(&b.out, ":%d\r\n", e.N[0])
	}
	return e
}

// scripted stands in for a server: what it answers to a script is up to the test.
type scripted struct {
	addr string

	mu    sync.Mutex
	reply string
	cut   int
}

func newScripted(f *testing.F) *scripted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	s := &scripted{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(conn) })
		}
	})
	f.Cleanup(func() {
		l.Close()
		wg.Wait() // for the connections, which the client has closed by now
	})
	return s
}

// answer is what is answered to scripts from now on; if cut is not 0, no more of it than
// so many bytes, and the connection ends.
func (s *scripted) answer(reply string, cut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply, s.cut = reply, cut
}

func (s *scripted) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		command, err := request(in)
		if err != nil {
			return
		}
		reply, end := "+OK\r\n", false
		switch strings.ToUpper(command[0]) {
		case "HELLO":
			reply = "%2\r\n+version\r\n+7.2.0\r\n+proto\r\n:3\r\n"
		case "PING":
			reply = "+PONG\r\n"
		case "CLUSTER":
			reply = "-ERR This instance has cluster support disabled\r\n"
		case "EVAL", "EVALSHA":
			s.mu.Lock()
			reply = s.reply
			if 0 < s.cut && s.cut < len(reply) {
				reply, end = reply[:s.cut], true
			}
			s.mu.Unlock()
		}
		if _, err := io.WriteString(conn, reply); err != nil || end {
			return
		}
	}
}

// request reads a command: *2, $4, PING, …
func request(in *bufio.Reader) (command []string, err error) {
	number := func() (n int) {
		var line string
		if line, err = in.ReadString('\n'); err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		}
		return n
	}
	for n := number(); len(command) < n && err == nil; {
		argument := make([]byte, number()+2)
		if _, err = io.ReadFull(in, argument); err == nil {
			command = append(command, string(argument[:len(argument)-2]))
		}
	}
	return command, err
}
