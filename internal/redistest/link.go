package redistest

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one client's connection through the proxy. In each direction one
// goroutine reads frames and another writes them, with a queue between them.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	stream         bool
	done           chan struct{} // closed with the link
	closing        sync.Once

	muted       atomic.Bool // nothing more gets to the client
	lostReplies atomic.Bool // DropReplies dropped something
	replyMatcher
}

// queuedFrame is a frame under way, or the end of its direction.
type queuedFrame struct {
	frame
	end bool
	due time.Time
}

const (
	queueLen   = 4096             // frames under way in one direction
	writeLimit = 10 * time.Second // for a peer that does not read: the link is cut
)

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
	up, down := make(chan queuedFrame, queueLen), make(chan queuedFrame, queueLen)
	var wg sync.WaitGroup
	wg.Go(func() { l.read(l.client, up) })
	wg.Go(func() { l.read(l.server, down) })
	wg.Go(func() { l.deliver(up, l.passRequest) })
	wg.Go(func() { l.deliver(down, l.passReply) })
	wg.Wait()
	l.close()
}

func (l *link) read(from net.Conn, to chan<- queuedFrame) {
	frames := newFrameReader(from)
	next := frames.next
	if l.stream {
		next = frames.some
	}
	for end := false; !end; {
		f, err := next()
		if errors.Is(err, errProtocol) {
			l.p.t.Errorf("redistest: proxy: from %v: %v", from.RemoteAddr(), err)
		}
		end = err != nil
		select {
		case to <- queuedFrame{frame: f, end: end, due: time.Now().Add(time.Duration(l.p.delay.Load()))}:
		case <-l.done:
			return
		}
	}
}

// deliver takes frames from the queue, until handOn returns false.
func (l *link) deliver(from <-chan queuedFrame, handOn func(queuedFrame) bool) {
	for more := true; more; {
		select {
		case next := <-from:
			if !l.pass(next.due, func() { more = handOn(next) }) {
				return
			}
		case <-l.done:
			return
		}
	}
}

// pass calls do when the frame is due and the proxy is not frozen. It returns false if the link ends before.
func (l *link) pass(due time.Time, do func()) bool {
	if wait := time.Until(due); wait > 0 {
		select {
		case <-time.After(wait):
		case <-l.done:
			return false
		}
	}
	for {
		l.p.gate.RLock()
		thaw := l.p.thaw
		if thaw == nil {
			defer l.p.gate.RUnlock()
			do()
			return true
		}
		l.p.gate.RUnlock()
		select {
		case <-thaw:
		case <-l.done:
			return false
		}
	}
}

// passRequest passes on a frame from the client.
func (l *link) passRequest(p queuedFrame) bool {
	if p.end {
		_ = l.server.CloseWrite() // it may still be busy with earlier requests, and ends the link
		return false
	}
	if words := p.words(); len(words) > 0 {
		if held := l.p.takeHold(words); held != nil {
			l.muted.Store(true)
			if !held.silent {
				l.client.Close()
				_ = l.server.CloseWrite()
			}
			held.cmd, held.raw = words, p.raw
			close(held.caught)
			return held.silent
		}
		l.sent(words)
	}
	return l.write(l.server, p.raw)
}

// passReply passes on a frame from the server.
func (l *link) passReply(p queuedFrame) bool {
	if p.end {
		l.close()
		return false
	}
	if cmd := l.received(p.value); cmd != nil {
		if loss := l.p.takeLoss(cmd); loss != nil {
			l.muted.Store(true)
			if !loss.silent {
				l.close()
			}
			loss.lost.Add(1)
			return loss.silent
		}
	}
	switch {
	case l.muted.Load():
	case l.p.dropReplies:
		l.muted.Store(true)
		l.lostReplies.Store(true)
	case l.p.dropMessages && l.isMessage(p.value):
	case !l.write(l.client, p.raw):
		l.muted.Store(true) // the client is gone; its requests are to be executed all the same
	}
	return true
}

// write writes to a peer. A peer that does not read for long is cut off, since no fault
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
