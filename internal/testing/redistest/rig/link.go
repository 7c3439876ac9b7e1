package rig

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is one client's connection through the proxy. In each direction one
// goroutine reads frames and another writes them, with a queue between them.
type link struct {
	p              *Proxy
	client, server *net.TCPConn
	done           chan struct{} // closed with the link
	closing        sync.Once

	speaks      bool        // the client has sent a frame; only its reader uses that
	replicates  atomic.Bool // the client is a replica
	muted       atomic.Bool // nothing more gets to the client
	lostReplies atomic.Bool // DropReplies dropped something
	replyMatcher
}

// direction is one of the two directions of a link.
type direction struct {
	from, to net.Conn
	queue    chan queuedFrame
	next     func(*Reader) (Frame, error)
	way      func(*Rules) *Way
	// pass passes on a frame, or not, under the gate. It reports whether the direction goes on.
	pass func(*direction, queuedFrame) (more bool)
}

// queuedFrame is a frame under way, or the end of its direction.
type queuedFrame struct {
	Frame
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
	up := &direction{l.client, l.server, make(chan queuedFrame, queueLen), l.nextUp, l.up, l.passRequest}
	down := &direction{l.server, l.client, make(chan queuedFrame, queueLen), l.nextDown, l.down, l.passReply}
	var wg sync.WaitGroup
	for _, d := range []*direction{up, down} {
		wg.Go(func() { l.read(d) })
		wg.Go(func() { l.deliver(d) })
	}
	wg.Wait()
	l.close()
}

func (l *link) up(r *Rules) *Way {
	if l.replicates.Load() {
		return &r.Stream
	}
	return &r.Up
}

func (l *link) down(r *Rules) *Way {
	if l.replicates.Load() {
		return &r.Stream
	}
	return &r.Down
}

// nextUp reads the next frame of the client, and detects whether the client is a replica. One that never speaks the Redis
// protocol looks for another server, which had the port before.
func (l *link) nextUp(from *Reader) (Frame, error) {
	if l.p.options.Bytes {
		return from.some()
	}
	f, err := from.Next()
	if len(f.Elems) > 0 && strings.EqualFold(f.Elems[0].Str, "REPLCONF") {
		l.replicates.Store(true)
	}
	if errors.Is(err, errProtocol) && !l.speaks {
		err = io.EOF
	}
	l.speaks = true
	return f, err
}

// nextDown reads the next frame of the server. The stream to a replica has no frames.
func (l *link) nextDown(from *Reader) (Frame, error) {
	if l.p.options.Bytes || l.replicates.Load() {
		return from.some()
	}
	return from.Next()
}

func (l *link) read(d *direction) {
	frames := NewReader(d.from)
	for end := false; !end; {
		f, err := d.next(frames)
		if errors.Is(err, errProtocol) && l.p.options.Report != nil {
			l.p.options.Report(err)
		}
		end = err != nil
		l.p.gate.RLock()
		delay := l.p.options.Far + d.way(&l.p.rules).Delay
		l.p.gate.RUnlock()
		select {
		case d.queue <- queuedFrame{Frame: f, end: end, due: time.Now().Add(delay)}:
		case <-l.done:
			return
		}
	}
}

// deliver passes frames on when they are due and the way is not blocked, until pass ends it.
func (l *link) deliver(d *direction) {
	var clock alarm
	defer clock.close()
	for more := true; more; {
		var next queuedFrame
		select {
		case next = <-d.queue:
		case <-l.done:
			return
		}
		if !clock.await(next.due, l.done) || !l.enter(d.way) {
			return
		}
		more = d.pass(d, next)
		l.p.gate.RUnlock()
	}
}

// enter waits until a way is not blocked, and takes the gate. It returns false, without the gate, if the link ends before.
func (l *link) enter(way func(*Rules) *Way) bool {
	for {
		l.p.gate.RLock()
		if !way(&l.p.rules).Blocked {
			return true
		}
		changed := l.p.changed
		l.p.gate.RUnlock()
		select {
		case <-changed:
		case <-l.done:
			return false
		}
	}
}

// passRequest passes on a frame from the client.
func (l *link) passRequest(d *direction, f queuedFrame) (more bool) {
	if f.end {
		_ = l.server.CloseWrite() // it may still be busy with earlier requests, and ends the link
		return false
	}
	if words := f.Words(); len(words) > 0 && !l.replicates.Load() {
		if held := l.p.takeHold(words); held != nil {
			l.muted.Store(true)
			if !held.silent {
				l.client.Close()
				_ = l.server.CloseWrite()
			}
			held.cmd, held.raw = words, f.raw
			close(held.caught)
			return held.silent
		}
		l.sent(words)
	}
	return l.write(d, f.raw)
}

// passReply passes on a frame from the server.
func (l *link) passReply(d *direction, f queuedFrame) (more bool) {
	if f.end {
		l.close()
		return false
	}
	if cmd := l.received(f.Value); cmd != nil {
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
	case l.p.rules.DropReplies:
		l.muted.Store(true)
		l.lostReplies.Store(true)
	case l.p.rules.DropMessages && l.isMessage(f.Value):
	case !l.write(d, f.raw):
		l.muted.Store(true) // the client is gone; its requests are to be executed all the same
	}
	return true
}

// write writes under the gate, which it leaves while the bytes trickle. A peer that does not read for long is cut off,
// since the rules cannot change in the meantime.
func (l *link) write(d *direction, b []byte) (more bool) {
	var piece int
	for ; len(b) > 0; b = b[piece:] {
		trickles := len(b) > trickleBytes && d.way(&l.p.rules).Trickle
		if piece = len(b); trickles {
			piece = trickleBytes
		}
		_ = d.to.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, err := d.to.Write(b[:piece]); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				l.close()
			}
			return false
		}
		if trickles {
			l.p.gate.RUnlock()
			time.Sleep(tricklePause)
			l.p.gate.RLock()
		}
	}
	return true
}
