package redistest

import (
	"slices"
	"sync/atomic"
	"testing"
)

// Mode is what becomes of a connection on which a client waits for a reply that
// will not come. Later replies can not get through to the client, which would take
// them for the one that is missing.
type Mode int

const (
	// Lost cuts the connection: the client sees an error at once.
	Lost Mode = iota
	// Silent leaves it open, and nothing more comes through it to the client, which
	// sees a timeout. What the client goes on to send does reach the server.
	Silent
)

// Loss is a number of replies to be lost, see [Proxy.DropRepliesTo].
type Loss struct {
	match  func(cmd []string) bool
	silent bool
	want   int // below 1: every one
	taken  int // guarded by the proxy's mu
	lost   atomic.Int64
}

// DropRepliesTo loses the next n replies (all of them if n is below 1) to commands
// that match: the server carries the command out, and the client is not told. What
// that means to the connection is said by the mode, which is [Lost] by default.
//
// match is called on goroutines of the proxy's and must not call its methods. It sees no
// replies on connections that subscribe in RESP2.
func (p *Proxy) DropRepliesTo(match func(cmd []string) bool, n int, mode ...Mode) *Loss {
	l := &Loss{match: match, silent: slices.Contains(mode, Silent), want: n}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losses = append(p.losses, l)
	return l
}

// Count tells how many replies were lost so far.
func (l *Loss) Count() int { return int(l.lost.Load()) }

// Wait waits until all the replies that were asked for are lost; or one, if no
// number was set. The commands have been carried out by then, and connections cut.
func (l *Loss) Wait(t testing.TB) {
	t.Helper()
	Eventually(t, "the reply to be lost", func() bool { return l.Count() >= max(1, l.want) })
}

// takeLoss gives the loss that the reply to a command is to suffer, or nil.
func (p *Proxy) takeLoss(cmd []string) *Loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.losses, func(l *Loss) bool { return l.match(cmd) })
	if i < 0 {
		return nil
	}
	l := p.losses[i]
	if l.taken++; l.taken == l.want {
		p.losses = slices.Delete(p.losses, i, i+1)
	}
	return l
}
