package redistest

import (
	"net"
	"slices"
	"testing"
	"time"
)

// Held is a command to be held back, see [Proxy.Hold].
type Held struct {
	match  func(cmd []string) bool
	silent bool
	target string

	caught chan struct{} // closed when the fields below are set
	cmd    []string
	raw    []byte
}

// Hold keeps the next command that matches from the server until [Held.Release]. All
// others pass. The client never gets a reply to it; the mode, [Lost] by default, says what
// happens to its connection.
//
// match is called on goroutines of the proxy and must not call its methods.
func (p *Proxy) Hold(match func(cmd []string) bool, mode ...Mode) *Held {
	h := &Held{match: match, silent: slices.Contains(mode, Silent), target: p.target, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h
}

// Wait waits until a command is held, and returns its name and arguments. In mode [Lost]
// the client's connection is cut by then.
func (h *Held) Wait(t testing.TB) []string {
	t.Helper()
	Eventually(t, "a command to be held", func() bool {
		select {
		case <-h.caught:
			return true
		default:
			return false
		}
	})
	return h.cmd
}

// Release waits until a command is held and delivers it to the server, past the
// proxy and its faults, on a connection of its own: in RESP2, without a login, in database 0.
// It returns the reply as text: strings and numbers as they are, an error with a "-" before it,
// null as "(nil)", arrays and the like as "[a b c]". Each further Release delivers the command
// once more.
func (h *Held) Release(t testing.TB) string {
	t.Helper()
	h.Wait(t)
	conn := must[net.Conn](t, "release")(net.DialTimeout("tcp", h.target, Limit))
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Limit))
	must[int](t, "release")(conn.Write(h.raw))
	return must[frame](t, "release")(newFrameReader(conn).next()).text()
}

// takeHold returns the hold that applies to a command, or nil.
func (p *Proxy) takeHold(cmd []string) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.holds, func(h *Held) bool { return h.match(cmd) })
	if i < 0 {
		return nil
	}
	h := p.holds[i]
	p.holds = slices.Delete(p.holds, i, i+1)
	return h
}
