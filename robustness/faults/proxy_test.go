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

// rig is a Redis behind a proxy.
func rig(t *testing.T) (*server, *Proxy) {
	t.Helper()
	return farRig(t, 0)
}

// farRig is one that is so far away in each direction.
func farRig(t *testing.T, far time.Duration) (*server, *Proxy) {
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

// dial connects to Redis through the proxy; say sends a line and next gives a reply.
func dial(t *testing.T, p *Proxy) (say func(string), next func(time.Duration) string) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	replies := bufio.NewReader(conn)
	say = func(line string) {
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
	return say, next
}

const soon = 50 * time.Millisecond // for what is not to come

func TestAWayThatIsBlocked(t *testing.T) {
	for _, up := range []bool{true, false} {
		s, p := rig(t)
		say, next := dial(t, p)
		p.set(func(r *rules) { r.up.blocked, r.down.blocked = up, !up })
		say("SET k v")
		if got := next(soon); !strings.Contains(got, "timeout") {
			t.Errorf("up %v: the reply %q came through", up, got)
		}
		lines, err := s.do("EXISTS", "k")
		if err != nil || (lines[0] == ":0") != up {
			t.Errorf("up %v: the key exists: %v, %v", up, lines, err)
		}
		p.set(func(r *rules) { *r = rules{} })
		if got := next(limit); got != "+OK\r\n" {
			t.Errorf("up %v: when it is open again comes %q", up, got)
		}
	}
}

func TestRepliesThatAreLost(t *testing.T) {
	s, p := rig(t)
	say, next := dial(t, p)
	p.set(func(r *rules) { r.dropReplies = true })
	say("SET k v")
	if got := next(soon); !strings.Contains(got, "timeout") {
		t.Errorf("the reply %q came through", got)
	}
	if lines, err := s.do("EXISTS", "k"); err != nil || lines[0] != ":1" {
		t.Errorf("the command was not carried out: %v, %v", lines, err)
	}
	p.set(func(r *rules) { *r = rules{} })
	if got := next(limit); got != "EOF" {
		t.Errorf("a connection that has lost a reply lives on, and says %q", got)
	}
}

func TestMessagesThatAreLost(t *testing.T) {
	s, p := rig(t)
	say, next := dial(t, p)
	say("HELLO 3")
	next(limit)
	say("SUBSCRIBE c")
	next(limit)
	p.set(func(r *rules) { r.dropMessages = true })
	for _, m := range []string{"lost", "seen"} {
		if _, err := s.do("PUBLISH", "c", m); err != nil {
			t.Fatal(err)
		}
		if m == "lost" {
			say("PING") // it comes after the message
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

func TestDelayAndTrickle(t *testing.T) {
	_, p := rig(t)
	say, next := dial(t, p)
	p.set(func(r *rules) { r.up.delay, r.down.delay, r.down.trickle = soon, soon, true })
	began := time.Now()
	say("PING")
	if got := next(limit); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < 2*soon {
		t.Errorf("it took %v, less than the delay of both ways", took)
	}
}

// Who is far away is so without a fault as well, and when one has healed.
func TestFar(t *testing.T) {
	_, p := farRig(t, soon)
	p.set(func(r *rules) { *r = rules{} })
	say, next := dial(t, p)
	began := time.Now()
	say("PING")
	if got := next(limit); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took < 2*soon {
		t.Errorf("it took %v, less than both ways", took)
	}
}

func TestRefuseAndCut(t *testing.T) {
	_, p := rig(t)
	say, next := dial(t, p)
	say("PING") // so that the connection is known
	next(limit)
	p.cut()
	if got := next(limit); got != "EOF" && !strings.Contains(got, "reset") {
		t.Errorf("a connection that was cut says %q", got)
	}
	p.set(func(r *rules) { r.refuse = true })
	say, next = dial(t, p)
	say("PING")
	if got := next(limit); got != "EOF" && !strings.Contains(got, "reset") {
		t.Errorf("a connection that was refused says %q", got)
	}
}
