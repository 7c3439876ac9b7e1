package redistest

// The proxy's faults happen: otherwise the tests that inject them would test nothing.

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

func TestMain(m *testing.M) { Main(m) }

// wire is a client that pipelines by hand: it sends requests and reads frames.
type wire struct {
	*testing.T
	conn net.Conn
	in   *rig.Reader
}

func dial(t *testing.T, p *Proxy) *wire {
	t.Helper()
	conn := must[net.Conn](t, "dial")(net.Dial("tcp", p.Addr()))
	t.Cleanup(func() { conn.Close() })
	return &wire{t, conn, rig.NewReader(conn)}
}

func (w *wire) send(words ...string) {
	w.Helper()
	must[int](w, "send")(w.conn.Write(rig.Request(words...)))
}

func (w *wire) next(limit time.Duration) (rig.Frame, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(limit))
	return w.in.Next()
}

// ask sends a request, and reads one frame.
func (w *wire) ask(words ...string) string {
	w.Helper()
	w.send(words...)
	return must[rig.Frame](w, words[0])(w.next(Limit)).Text()
}

// expect expects a frame, as text.
func (w *wire) expect(want string) {
	w.Helper()
	if f, err := w.next(Limit); err != nil || f.Text() != want {
		w.Errorf("read %q and %v, want %q", f.Text(), err, want)
	}
}

// expectEnd expects that the connection ends, and nothing but pushes before.
func (w *wire) expectEnd() {
	w.Helper()
	f, err := w.next(Limit)
	for err == nil && f.Kind == '>' {
		f, err = w.next(Limit)
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("read %q and %v, want the end", f.Text(), err)
	}
}

// expectSilence expects that for a while nothing comes, and the connection stays.
func (w *wire) expectSilence() {
	w.Helper()
	if f, err := w.next(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.Errorf("read %q and %v, want nothing", f.Text(), err)
	}
}

// A fault happens, and after its end new connections work.
func TestProxy_WorksAfterAFault(t *testing.T) {
	s := Shared(t)
	for name, fault := range map[string]func(p *Proxy, c *wire, key string){
		"refuse": func(p *Proxy, c *wire, _ string) {
			p.Refuse(true)
			c.expectEnd()
			dial(c.T, p).expectEnd()
			p.Refuse(false)
		},
		"freeze": func(p *Proxy, c *wire, key string) {
			p.Freeze(true)
			c.send("SET", key, "v")
			s.MustDo(c, "PUBLISH", key, "hello")
			c.expectSilence()
			if keys := s.Keys(c, key); len(keys) != 0 {
				c.Error("a request passed")
			}
			p.Freeze(false)
			c.expect("[message " + key + " hello]")
			c.expect("OK")
		},
		"delay": func(p *Proxy, c *wire, _ string) {
			const d = 60 * time.Millisecond
			p.Delay(d)
			start := time.Now()
			for i := range 300 { // one sleep for each would take a while
				c.send("ECHO", strconv.Itoa(i))
			}
			c.expect("0")
			if took := time.Since(start); took < d {
				c.Errorf("the first reply took %v", took)
			}
			p.Delay(0)
			c.send("ECHO", "300") // must not overtake
			for i := 1; i <= 300; i++ {
				c.expect(strconv.Itoa(i))
			}
			if took := time.Since(start); took > 100*d {
				c.Errorf("the pipeline took %v", took)
			}
		},
		"nothing reaches the server": func(p *Proxy, c *wire, key string) {
			p.Set(func(r *rig.Rules) { r.Up.Blocked = true })
			c.send("SET", key, "v")
			s.MustDo(c, "PUBLISH", key, "hello")
			c.expect("[message " + key + " hello]")
			if keys := s.Keys(c, key); len(keys) != 0 {
				c.Error("a request passed")
			}
			p.Heal()
			c.expect("OK")
		},
		"nothing comes back": func(p *Proxy, c *wire, key string) {
			p.Set(func(r *rig.Rules) { r.Down.Blocked = true })
			c.send("SET", key, "v")
			Eventually(c, "the request to be executed", func() bool { return len(s.Keys(c, key)) == 1 })
			c.expectSilence()
			p.Heal()
			c.expect("OK")
		},
		"only new connections get no replies": func(p *Proxy, c *wire, _ string) {
			p.Set(func(r *rig.Rules) { r.Cut, r.Down.Blocked = true, true })
			c.expectEnd()
			later := dial(c.T, p)
			later.send("PING")
			later.expectSilence()
			p.Heal()
			later.expect("PONG")
		},
		"trickle": func(p *Proxy, c *wire, _ string) {
			p.Set(func(r *rig.Rules) { r.Down.Trickle = true })
			text, start := strings.Repeat("long", 50), time.Now()
			c.send("ECHO", text)
			c.expect(text)
			if took := time.Since(start); took < 40*time.Millisecond { // 200 bytes, seven in two milliseconds
				c.Errorf("the reply took %v", took)
			}
			p.Heal()
		},
		"no replies": func(p *Proxy, c *wire, key string) {
			p.DropReplies(true)
			c.send("SET", key, "v")
			Eventually(c, "the request to be executed", func() bool { return len(s.Keys(c, key)) == 1 })
			c.expectSilence()
			p.DropReplies(false)
			c.expectEnd()
		},
		"no messages": func(p *Proxy, c *wire, key string) {
			p.DropMessages(true)
			s.MustDo(c, "PUBLISH", key, "lost")
			c.ask("SUBSCRIBE", key+"2")                                                            // so the message has passed
			if got := c.ask("EVAL", "return {'message', 'a', 'b'}", "0"); got != "[message a b]" { // looks like one
				c.Errorf("EVAL: %q", got)
			}
			p.DropMessages(false)
			s.MustDo(c, "PUBLISH", key, "found")
			c.expect("[message " + key + " found]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, key := NewProxy(t, s.Addr()), Name(t)
			c := dial(t, p)
			c.ask("HELLO", "3")
			c.ask("SUBSCRIBE", key)
			fault(p, c, key)
			if got := dial(t, p).ask("PING"); got != "PONG" {
				t.Errorf("PING afterwards: %q", got)
			}
			p.Freeze(true) // it must end all the same
		})
	}
}

// A distance is no fault: it stays when the faults have ended.
func TestProxy_DistanceStays(t *testing.T) {
	const far = 100 * time.Millisecond
	p := must[*rig.Proxy](t, "proxy")(rig.NewProxy(Shared(t).Addr(), rig.ProxyOptions{Far: far}))
	t.Cleanup(p.Close)
	p.Heal()
	c, start := dial(t, &Proxy{p}), time.Now()
	if got := c.ask("PING"); got != "PONG" {
		t.Errorf("PING: %q", got)
	}
	if took := time.Since(start); took < 2*far {
		t.Errorf("it took %v, less than both ways", took)
	}
}

// A command whose reply is lost was executed, and the next of its kind is not affected; a
// command that is held was not executed.
func TestProxy_DropsAReplyOrHoldsACommand(t *testing.T) {
	s := Shared(t)
	for _, mode := range []Mode{Lost, Silent} {
		p, key := NewProxy(t, s.Addr()), Name(t)
		lose := func() {
			t.Helper()
			c := dial(t, p)
			c.ask("ECHO", "before")
			c.send("INCR", key)
			if mode == Lost {
				c.expectEnd()
			} else {
				c.send("SET", key+"2", "v") // arrives at the server
				c.expectSilence()
				Eventually(t, "the later request", func() bool { return len(s.Keys(t, key+"2")) == 1 })
			}
		}
		loss := p.DropRepliesTo(Command("incr"), 2, mode)
		lose()
		lose()
		loss.Wait(t)
		if got := dial(t, p).ask("INCR", key); got != "3" {
			t.Errorf("the next of its kind: %q", got)
		}
		held := p.Hold(Command("INCR"), mode)
		lose()
		if got, want := held.Wait(t), []string{"INCR", key}; !slices.Equal(got, want) {
			t.Errorf("held %q, want %q", got, want)
		}
		if got := dial(t, p).ask("INCR", key); got != "4" {
			t.Errorf("the next of its kind: %q", got)
		}
		p.Refuse(true) // does not affect the release
		if first, second := held.Release(t), held.Release(t); first != "5" || second != "6" {
			t.Errorf("released: %q, and again: %q", first, second)
		}
	}
}

// Only the reply to the chosen command is lost, with any commands before it in its pipeline.
func TestProxy_DropsOnlyTheChosenReply(t *testing.T) {
	p, a := NewProxy(t, Shared(t).Addr()), Name(t)
	before := []string{
		"HELLO 3", "SUBSCRIBE " + a + " b", "PING x",
		"SUBSCRIBE",   // an error, not a push
		"UNSUBSCRIBE", // two pushes for one request without arguments
		"CLIENT TRACKING ON BCAST PREFIX " + a,
		"SET " + a + " v", // makes a push, after its reply
		"LRANGE none 0 -1", "NOSUCHCOMMAND",
	}
	for i := range before {
		c, mark := dial(t, p), fmt.Sprint("mark", i)
		loss := p.DropRepliesTo(func(cmd []string) bool { return cmd[len(cmd)-1] == mark }, 1)
		for _, words := range append(before[:i+1:i+1], "PING last", "ECHO "+mark) {
			c.send(strings.Fields(words)...)
		}
		for got := ""; got != "last"; {
			got = must[rig.Frame](t, "a reply before")(c.next(Limit)).Text()
		}
		loss.Wait(t)
		c.expectEnd()
	}
}
