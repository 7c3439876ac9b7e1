package redistest

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Proxy is a TCP proxy between clients and a server, whose faults a test switches
// on and off. When such a method returns, its fault is in force.
type Proxy struct{ *rig.Proxy }

// NewProxy starts a proxy to the server at target (host:port), which ends with the
// test. The server need not run yet: a client that connects while it does not is
// disconnected.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := rig.NewProxy(target, rig.ProxyOptions{Report: func(err error) { t.Errorf("redistest: proxy: %v", err) }})
	check(t, err)
	t.Cleanup(p.Close)
	return &Proxy{p}
}

// Refuse closes present connections and, while on, new ones at once.
func (p *Proxy) Refuse(on bool) {
	p.Set(func(r *rig.Rules) { r.Refuse = on })
}

// Freeze lets nothing pass in either direction while on. Connections stay open,
// new ones are accepted, and what was sent in the meantime passes afterwards.
func (p *Proxy) Freeze(on bool) {
	p.Set(func(r *rig.Rules) { r.Up.Blocked, r.Down.Blocked, r.Stream.Blocked = on, on, on })
}

// Delay makes everything take d longer in each direction, in order and without a
// loss of throughput. What is under way keeps the delay it was sent with.
func (p *Proxy) Delay(d time.Duration) {
	p.Set(func(r *rig.Rules) { r.Up.Delay, r.Down.Delay, r.Stream.Delay = d, d, d })
}

// DropReplies passes requests on, and drops all that the server sends (replies and
// pushes) while on; connections stay open. Switching off cuts the connections that
// lost something, since their clients would take later replies for the lost ones.
func (p *Proxy) DropReplies(on bool) {
	p.Set(func(r *rig.Rules) { r.DropReplies = on })
}

// DropMessages drops published messages while on. Everything else passes, and the
// connections stay open.
func (p *Proxy) DropMessages(on bool) {
	p.Set(func(r *rig.Rules) { r.DropMessages = on })
}

// Mode is what happens to a connection on which a reply was lost.
type Mode = rig.Mode

const (
	// Lost cuts the connection: the client sees an error at once.
	Lost = rig.Lost
	// Silent leaves it open, but the client receives nothing more and sees a timeout.
	// The client's later requests do reach the server.
	Silent = rig.Silent
)

// Loss is a number of replies to be lost.
type Loss struct{ *rig.Loss }

// DropRepliesTo loses the next n replies (all of them if n is below 1) to commands that match, as
// rig.Proxy.DropRepliesTo does.
func (p *Proxy) DropRepliesTo(match func(cmd []string) bool, n int, mode ...Mode) *Loss {
	return &Loss{p.Proxy.DropRepliesTo(match, n, mode...)}
}

// Wait waits until all n replies are lost, or one if n was below 1. By then the commands
// have been executed, and the connections cut.
func (l *Loss) Wait(t testing.TB) {
	t.Helper()
	Eventually(t, "the reply to be lost", l.Done)
}

// Held is a command to be held back.
type Held struct{ *rig.Held }

// Hold keeps the next command that matches from the server until [Held.Release], as rig.Proxy.Hold does.
func (p *Proxy) Hold(match func(cmd []string) bool, mode ...Mode) *Held {
	return &Held{p.Proxy.Hold(match, mode...)}
}

// See calls look with each command that passes, on a goroutine of the proxy.
func (p *Proxy) See(look func(cmd []string)) {
	p.Proxy.Hold(func(cmd []string) bool { look(cmd); return false })
}

// Wait waits until a command is held, and returns its name and arguments. In mode [Lost]
// the client's connection is cut by then.
func (h *Held) Wait(t testing.TB) (cmd []string) {
	t.Helper()
	Eventually(t, "a command to be held", func() (caught bool) {
		cmd, caught = h.Caught()
		return caught
	})
	return cmd
}

// Release waits until a command is held and delivers it to the server, as rig.Held.Release does. It returns the reply
// as text, see [rig.Value.Text].
func (h *Held) Release(t testing.TB) string {
	t.Helper()
	h.Wait(t)
	reply, err := h.Held.Release()
	check(t, err)
	return reply.Text()
}
