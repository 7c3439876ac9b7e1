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

// Proxy stands between one client process and Redis, or between a server and all others. Its faults can be
// switched at any time, and change what passes from then on.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup
	far      time.Duration // what everything takes in each direction, without a fault

	mu      sync.Mutex // guards what follows
	target  string
	rules   rules
	changed chan struct{} // closed and renewed when the rules change
	links   map[*link]struct{}
	closed  bool
}

// rules are the faults of a network.
type rules struct {
	// refuse sends new connections away; cut closes those that there are.
	refuse, cut bool
	// up and down are the way to Redis and the way back, and stream is that to and from its replicas.
	up, down, stream way
	// dropReplies throws away all that comes back; dropMessages only what is published.
	dropReplies, dropMessages bool
}

// way is one direction.
type way struct {
	// blocked lets nothing pass; it passes later.
	blocked bool
	delay   time.Duration
	// trickle sends a few bytes at a time.
	trickle bool
}

const (
	crumb      = 7 // bytes at a time
	crumbPause = 2 * time.Millisecond
	underWay   = 4096 // pieces, in one direction of a connection
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

// set changes the rules. Connections that lost replies are of no use any more.
func (p *Proxy) set(change func(*rules)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.rules
	change(&p.rules)
	close(p.changed)
	p.changed = make(chan struct{})
	if before.dropReplies && !p.rules.dropReplies {
		p.cutLocked(func(l *link) bool { return l.robbed })
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
	welcome := !p.closed && !p.rules.refuse && target == p.target
	if welcome {
		p.links[l] = struct{}{}
	}
	p.mu.Unlock()
	if welcome {
		l.run()
	}
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// now are the rules at this moment, and what tells of their change.
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
	robbed         bool        // guarded by the proxy's mu
	replicates     atomic.Bool // the client is a replica
}

// towards and back are the two ways of the connection.
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

// piece is something under way.
type piece struct {
	bytes []byte
	due   time.Time
}

func (l *link) run() {
	var wg sync.WaitGroup
	up, down := make(chan piece, underWay), make(chan piece, underWay)
	wg.Go(func() { l.read(l.client, up, l.towards, l.next) })
	wg.Go(func() { l.read(l.server, down, l.back, l.nextBack) })
	wg.Go(func() { l.deliver(up, l.server, l.towards, nil) })
	wg.Go(func() { l.deliver(down, l.client, l.back, l.loses) })
	wg.Wait()
}

// next gives the next frame of the client, and notices that it is a replica.
func (l *link) next(from *bufio.Reader) ([]byte, error) {
	frame, err := readFrame(from)
	if bytes.Contains(frame, []byte("\r\nREPLCONF\r\n")) {
		l.replicates.Store(true)
	}
	return frame, err
}

// nextBack gives the next frame of the server; to a replica whatever there is, since it gets what is no frame.
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

// read takes frames in, with the delay that they have when they come.
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

// loses reports whether a frame of Redis's gets lost. It is the last look at the rules: a
// connection from which a reply was taken when the rule ends must not live on.
func (l *link) loses(frame []byte) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.rules.dropReplies {
		l.robbed = true
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
	for trickle && len(bytes) > crumb {
		if _, err := to.Write(bytes[:crumb]); err != nil {
			return false
		}
		bytes = bytes[crumb:]
		time.Sleep(crumbPause)
	}
	_, err := to.Write(bytes)
	return err == nil
}
