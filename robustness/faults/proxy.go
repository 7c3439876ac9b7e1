package faults

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy is a TCP proxy between one client process and Redis, or between a server and all others. Its faults can be
// switched at any time, and apply to what passes from then on.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup
	far      time.Duration // the delay in each direction, without a fault

	mu      sync.Mutex // guards what follows
	target  string
	rules   rules
	changed chan struct{} // closed and renewed when the rules change
	links   map[*link]struct{}
	closed  bool
}

// rules are the faults of a network.
type rules struct {
	// refuse closes new connections; cut closes the present ones.
	refuse, cut bool
	// up is the direction to Redis, down the direction back, and stream both directions of its replicas.
	up, down, stream way
	// dropReplies drops all that comes back; dropMessages only published messages.
	dropReplies, dropMessages bool
}

// way is the faults of one direction.
type way struct {
	// blocked delays everything until it ends.
	blocked bool
	delay   time.Duration
	// trickle sends a few bytes at a time.
	trickle bool
}

const (
	trickleBytes = 7 // bytes at a time
	tricklePause = 2 * time.Millisecond
	queueLength  = 4096 // pieces, in one direction of a connection
)

func newProxy(target string, far time.Duration) (*Proxy, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, far: far, target: target, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// set changes the rules. Connections that lost replies are cut when the rule ends.
func (p *Proxy) set(change func(*rules)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.rules
	change(&p.rules)
	close(p.changed)
	p.changed = make(chan struct{})
	if before.dropReplies && !p.rules.dropReplies {
		p.cutLocked(func(l *link) bool { return l.lostReplies })
	}
	if p.rules.refuse || p.rules.cut {
		p.cutLocked(func(*link) bool { return true })
	}
}

// retarget sends new connections to another server, and ends the present ones.
func (p *Proxy) retarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
	p.cutLocked(func(*link) bool { return true })
}

// redirect sends new connections to another server, and leaves the present ones.
func (p *Proxy) redirect(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// cut closes the connections.
func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked(func(*link) bool { return true })
}

func (p *Proxy) cutLocked(which func(*link) bool) {
	for l := range p.links {
		if which(l) {
			l.close()
		}
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.cutLocked(func(*link) bool { return true })
	p.mu.Unlock()
	p.listener.Close()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil {
		client.Close()
		return
	}
	l := &link{p: p, client: client, server: server, done: make(chan struct{})}
	p.mu.Lock()
	accepted := !p.closed && !p.rules.refuse && target == p.target
	if accepted {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if accepted {
		l.run()
	}
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// now returns the present rules, and a channel that is closed when they change.
func (p *Proxy) now() (rules, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules, p.changed
}

// link is one connection.
type link struct {
	p              *Proxy
	client, server net.Conn
	closing        sync.Once
	done           chan struct{}
	lostReplies    bool        // guarded by the proxy's mu
	replicates     atomic.Bool // the client is a replica
}

// towards and back are the two directions of the connection.
func (l *link) towards(r *rules) *way {
	if l.replicates.Load() {
		return &r.stream
	}
	return &r.up
}

func (l *link) back(r *rules) *way {
	if l.replicates.Load() {
		return &r.stream
	}
	return &r.down
}

func (l *link) close() {
	l.closing.Do(func() {
		close(l.done)
		l.client.Close()
		l.server.Close()
	})
}

// piece is a frame under way.
type piece struct {
	bytes []byte
	due   time.Time
}

func (l *link) run() {
	var wg sync.WaitGroup
	up, down := make(chan piece, queueLength), make(chan piece, queueLength)
	wg.Go(func() { l.read(l.client, up, l.towards, l.next) })
	wg.Go(func() { l.read(l.server, down, l.back, l.nextBack) })
	wg.Go(func() { l.deliver(up, l.server, l.towards, nil) })
	wg.Go(func() { l.deliver(down, l.client, l.back, l.loses) })
	wg.Wait()
}

// next reads the next frame of the client, and detects whether the client is a replica.
func (l *link) next(from *bufio.Reader) ([]byte, error) {
	frame, err := readFrame(from)
	if bytes.Contains(frame, []byte("\r\nREPLCONF\r\n")) {
		l.replicates.Store(true)
	}
	return frame, err
}

// nextBack reads the next frame of the server; for a replica all that is buffered, since the stream has no frames.
func (l *link) nextBack(from *bufio.Reader) ([]byte, error) {
	if !l.replicates.Load() {
		return readFrame(from)
	}
	if _, err := from.Peek(1); err != nil {
		return nil, err
	}
	some := make([]byte, from.Buffered())
	_, err := io.ReadFull(from, some)
	return some, err
}

// read queues frames, with the delay in force when they come.
func (l *link) read(from net.Conn, to chan<- piece, which func(*rules) *way, next func(*bufio.Reader) ([]byte, error)) {
	defer close(to)
	frames := bufio.NewReader(from)
	for {
		frame, err := next(frames)
		if err != nil {
			return
		}
		r, _ := l.p.now()
		select {
		case to <- piece{frame, time.Now().Add(l.p.far + which(&r).delay)}:
		case <-l.done:
			return
		}
	}
}

// loses reports whether a frame from Redis is dropped. It locks the rules, so that a connection
// that loses a reply just when the rule ends is cut.
func (l *link) loses(frame []byte) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.rules.dropReplies {
		l.lostReplies = true
		return true
	}
	return l.p.rules.dropMessages && isMessage(frame)
}

// deliver passes frames on, as the rules allow.
func (l *link) deliver(from <-chan piece, to net.Conn, which func(*rules) *way, loses func([]byte) bool) {
	defer l.close()
	for each := range from {
		if wait := time.Until(each.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.done:
				return
			}
		}
		r, changed := l.p.now()
		for which(&r).blocked {
			select {
			case <-changed:
			case <-l.done:
				return
			}
			r, changed = l.p.now()
		}
		if loses != nil && loses(each.bytes) {
			continue
		}
		if !l.write(to, each.bytes, which(&r).trickle) {
			return
		}
	}
}

func (l *link) write(to net.Conn, bytes []byte, trickle bool) bool {
	for trickle && len(bytes) > trickleBytes {
		if _, err := to.Write(bytes[:trickleBytes]); err != nil {
			return false
		}
		bytes = bytes[trickleBytes:]
		time.Sleep(tricklePause)
	}
	_, err := to.Write(bytes)
	return err == nil
}
