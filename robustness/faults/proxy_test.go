package faults

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startBehindProxy starts a Redis and a proxy in front of it.
func startBehindProxy(t *testing.T) (*server, *Proxy) {
	t.Helper()
	return startFarBehindProxy(t, 0)
}

// startFarBehindProxy is startBehindProxy with a delay in each direction.
func startFarBehindProxy(t *testing.T, far time.Duration) (*server, *Proxy) {
	t.Helper()
	s, err := startServer(clock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	p, err := newProxy(s.addr, far)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return s, p
}

// dial connects to Redis through the proxy; send sends a command and next reads a reply.
func dial(t *testing.T, p *Proxy) (send func(string), next func(time.Duration) string) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	replies := bufio.NewReader(conn)
	send = func(line string) {
		var b strings.Builder
		words := strings.Fields(line)
		b.WriteString("*" + string(rune('0'+len(words))) + "\r\n")
		for _, w := range words {
			b.WriteString("$" + string(rune('0'+len(w))) + "\r\n" + w + "\r\n")
		}
		_, _ = conn.Write([]byte(b.String())) // a broken connection shows in the reply
	}
	next = func(wait time.Duration) string {
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		frame, err := readFrame(replies)
		if err != nil {
			return err.Error()
		}
		return string(frame)
	}
	return send, next
}

const soon = 50 * time.Millisecond // for what must not come

func TestProxy_Blocked(t *testing.T) {
	for _, up := range []bool{true, false} {
		s, p := startBehindProxy(t)
		send, next := dial(t, p)
		p.set(func(r *rules) { r.up.blocked, r.down.blocked = up, !up })
		send("SET k v")
		if got := next(soon); !strings.Contains(got, "timeout") {
			t.Errorf("up %v: the reply %q came through", up, got)
		}
		lines, err := s.do("EXISTS", "k")
		if err != nil || (lines[0] == ":0") != up {
			t.Errorf("up %v: the key exists: %v, %v", up, lines, err)
		}
		p.set(func(r *rules) { *r = rules{} })
		if got := next(limit); got != "+OK\r\n" {
			t.Errorf("up %v: after the block the reply is %q", up, got)
		}
	}
}

func TestProxy_DropReplies(t *testing.T) {
	s, p := startBehindProxy(t)
	send, next := dial(t, p)
	p.set(func(r *rules) { r.dropReplies = true })
	send("SET k v")
	if got := next(soon); !strings.Contains(got, "timeout") {
		t.Errorf("the reply %q came through", got)
	}
	if lines, err := s.do("EXISTS", "k"); err != nil || lines[0] != ":1" {
		t.Errorf("the command was not executed: %v, %v", lines, err)
	}
	p.set(func(r *rules) { *r = rules{} })
	if got := next(limit); got != "EOF" {
		t.Errorf("a connection that has lost a reply stays open, and receives %q", got)
	}
}

func TestProxy_DropMessages(t *testing.T) {
	s, p := startBehindProxy(t)
	send, next := dial(t, p)
	send("HELLO 3")
	next(limit)
	send("SUBSCRIBE c")
	next(limit)
	p.set(func(r *rules) { r.dropMessages = true })
	for _, m := range []string{"lost", "seen"} {
		if _, err := s.do("PUBLISH", "c", m); err != nil {
			t.Fatal(err)
		}
		if m == "lost" {
			send("PING") // it comes after the message
			if got := next(limit); !strings.Contains(got, "PONG") {
				t.Errorf("got %q instead of the answer to PING", got)
			}
			p.set(func(r *rules) { r.dropMessages = false })
		}
	}
	if got := next(limit); !strings.Contains(got, "seen") {
		t.Errorf("got %q instead of the second message", got)
	}
}

func TestProxy_DelayAndTrickle(t *testing.T) {
	_, p := startBehindProxy(t)
	send, next := dial(t, p)
	p.set(func(r *rules) { r.up.delay, r.down.delay, r.down.trickle = soon, soon, true })
	began := time.Now()
	send("PING")
	if got := next(limit); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < 2*soon {
		t.Errorf("it took %v, less than the delay of both ways", took)
	}
}

// The additional delay applies without a fault, and after a fault has ended.
func TestProxy_Far(t *testing.T) {
	_, p := startFarBehindProxy(t, soon)
	p.set(func(r *rules) { *r = rules{} })
	send, next := dial(t, p)
	began := time.Now()
	send("PING")
	if got := next(limit); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < 2*soon {
		t.Errorf("it took %v, less than both ways", took)
	}
}

func TestProxy_RefuseAndCut(t *testing.T) {
	_, p := startBehindProxy(t)
	send, next := dial(t, p)
	send("PING") // so that the connection is known
	next(limit)
	p.cut()
	if got := next(limit); got != "EOF" && !strings.Contains(got, "reset") {
		t.Errorf("a connection that was cut receives %q", got)
	}
	p.set(func(r *rules) { r.refuse = true })
	send, next = dial(t, p)
	send("PING")
	if got := next(limit); got != "EOF" && !strings.Contains(got, "reset") {
		t.Errorf("a connection that was refused receives %q", got)
	}
}
