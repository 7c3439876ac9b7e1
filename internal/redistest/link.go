//go:build unix

package redistest

import (
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is one client's connection through the proxy. In each direction one
// goroutine reads frames and another passes them on, with a queue between them.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	done           chan struct{} // closed with the link
	closing        sync.Once

	deaf   atomic.Bool // nothing more gets to the client
	robbed atomic.Bool // DropReplies took something

	setup [][]byte // the requests that log in and choose a database, so far
	ledger
}

// parcel is a frame under way, or the end of its direction.
type parcel struct {
	frame
	end bool
	due time.Time
}

const (
	queueLen   = 4096             // frames under way in one direction
	writeLimit = 10 * time.Second // for a peer that does not read: the link is cut
)

func newLink(p *Proxy, client, server *net.TCPConn) *link {
	return &link{p: p, client: client, server: server, done: make(chan struct{})}
}

// close closes both connections at once.
func (l *link) close() {
	l.closing.Do(func() {
		close(l.done)
		l.client.Close()
		l.server.Close()
	})
}

// run works until the link is closed.
func (l *link) run() {
	up, down := make(chan parcel, queueLen), make(chan parcel, queueLen)
	var wg sync.WaitGroup
	wg.Go(func() { l.read(l.client, up) })
	wg.Go(func() { l.read(l.server, down) })
	wg.Go(func() { l.deliver(up, l.passRequest) })
	wg.Go(func() { l.deliver(down, l.passReply) })
	wg.Wait()
	l.close()
}

func (l *link) read(from net.Conn, to chan<- parcel) {
	frames := newFrameReader(from)
	for {
		f, err := frames.next()
		if bad := protocolError(""); errors.As(err, &bad) {
			l.p.t.Errorf("redistest: proxy: from %v: %v", from.RemoteAddr(), bad)
		}
		p := parcel{frame: f, end: err != nil, due: time.Now().Add(time.Duration(l.p.delay.Load()))}
		select {
		case to <- p:
		case <-l.done:
			return
		}
		if p.end {
			return
		}
	}
}

// deliver hands on what comes through the queue, until handOn says no.
func (l *link) deliver(from <-chan parcel, handOn func(parcel) bool) {
	for more := true; more; {
		select {
		case p := <-from:
			if !l.p.pass(p.due, l.done, func() { more = handOn(p) }) {
				return
			}
		case <-l.done:
			return
		}
	}
}

// passRequest passes on what comes from the client.
func (l *link) passRequest(p parcel) bool {
	if p.end {
		// The server may still be busy with earlier requests; it ends the link.
		_ = l.server.CloseWrite()
		return false
	}
	if words := p.words(); len(words) > 0 {
		if held := l.p.takeHold(words); held != nil {
			if held.mode == Lost {
				l.hangUp()
			} else {
				l.deaf.Store(true)
			}
			held.catch(words, p.raw, l.setup)
			return held.mode != Lost
		}
		switch strings.ToUpper(words[0]) {
		case "HELLO", "AUTH", "SELECT":
			l.setup = append(l.setup, p.raw)
		}
		l.sent(words)
	}
	return l.write(l.server, p.raw)
}

// passReply passes on what comes from the server.
func (l *link) passReply(p parcel) bool {
	if p.end {
		l.close()
		return false
	}
	if cmd := l.received(p.value); cmd != nil {
		if loss := l.p.takeLoss(cmd); loss != nil {
			if loss.mode == Lost {
				l.close()
			} else {
				l.deaf.Store(true)
			}
			loss.count()
			return loss.mode != Lost
		}
	}
	switch {
	case l.deaf.Load():
		return true
	case l.p.dropReplies:
		l.deaf.Store(true)
		l.robbed.Store(true)
		return true
	case l.p.dropMessages && l.isMessage(p.value):
		return true
	}
	if !l.write(l.client, p.raw) {
		// The client is gone. What it had asked for is to be done all the same.
		l.deaf.Store(true)
	}
	return true
}

// hangUp closes the connection to the client. The server is told that there are no
// more requests, and ends the link when it has done those it got.
func (l *link) hangUp() {
	l.deaf.Store(true)
	l.client.Close()
	_ = l.server.CloseWrite()
}

// write writes to a peer. One that does not read for long is cut off, since nothing
// can be switched in the meantime.
func (l *link) write(to *net.TCPConn, b []byte) bool {
	_ = to.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := to.Write(b)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		l.close()
	}
	return err == nil
}
