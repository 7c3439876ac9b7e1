package rig

import (
	"slices"
	"sync/atomic"
)

// Mode is what happens to a connection on which a reply was lost. Later replies cannot be
// passed to the client, which would take them for the missing one.
type Mode int

const (
	// Lost cuts the connection: the client sees an error at once.
	Lost Mode = iota
	// Silent leaves it open, but the client receives nothing more and sees a timeout.
	// The client's later requests do reach the server.
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
// that match: the server executes the command, and the client gets no reply. The mode,
// [Lost] by default, says what happens to the connection.
//
// match is called on goroutines of the proxy and must not call its methods. It sees no
// replies on connections that subscribe in RESP2.
func (p *Proxy) DropRepliesTo(match func(cmd []string) bool, n int, mode ...Mode) *Loss {
	l := &Loss{match: match, silent: slices.Contains(mode, Silent), want: n}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losses = append(p.losses, l)
	return l
}

// Count returns how many replies were lost so far. By then the commands have been executed, and the connections cut.
func (l *Loss) Count() int { return int(l.lost.Load()) }

// Done reports whether all n replies are lost, or one if n was below 1.
func (l *Loss) Done() bool { return l.Count() >= max(1, l.want) }

// takeLoss returns the loss that applies to the reply to a command, or nil.
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
