package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is a TCP proxy between clients and a server, whose faults a test switches
// on and off. When such a method returns, its fault is in force: no byte passes any
// more by the old rules.
//
// It supports neither inline commands nor TLS; a replica needs [ReplicaBehind].
type Proxy struct {
	t        testing.TB
	listener net.Listener
	wg       sync.WaitGroup
	delay    atomic.Int64 // a time.Duration

	// Held for reading while a frame is passed on, for writing while a switch is
	// set. It guards what follows.
	gate         sync.RWMutex
	thaw         chan struct{} // not nil while frozen; closed by the thaw
	target       string
	stream       bool // bytes pass as they come, not frame by frame
	refuse       bool
	dropReplies  bool
	dropMessages bool

	mu     sync.Mutex // guards what follows
	links  map[*link]struct{}
	losses []*Loss
	holds  []*Held
}

// NewProxy starts a proxy to the server at target (host:port), which ends with the
// test. The server need not run yet: a client that connects while it does not is
// disconnected.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{t: t, target: target, listener: l, links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.Refuse(true)
		l.Close()
		p.wg.Wait()
	})
	return p
}

// Addr is the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL is the proxy's address as redis://host:port.
func (p *Proxy) URL() string { return "redis://" + p.Addr() }

// Conns returns the number of present connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Cut closes all present connections. New ones are accepted again.
func (p *Proxy) Cut() {
	p.cutIf(func(*link) bool { return true })
}

// Redirect sends new connections to another server. Present ones stay.
func (p *Proxy) Redirect(target string) {
	p.set(func() { p.target = target })
}

// Refuse closes present connections and, while on, new ones at once.
func (p *Proxy) Refuse(on bool) {
	p.set(func() { p.refuse = on })
	if on {
		p.Cut()
	}
}

// Freeze lets no byte pass in either direction while on. Connections stay open,
// new ones are accepted, and what was sent in the meantime passes afterwards.
func (p *Proxy) Freeze(on bool) {
	p.set(func() {
		switch {
		case on && p.thaw == nil:
			p.thaw = make(chan struct{})
		case !on && p.thaw != nil:
			close(p.thaw)
			p.thaw = nil
		}
	})
}

// Delay makes everything take d longer in each direction, in order and without a
// loss of throughput. What is under way keeps the delay it was sent with.
func (p *Proxy) Delay(d time.Duration) {
	p.delay.Store(int64(d))
}

// DropReplies passes requests on, and drops all that the server sends (replies and
// pushes) while on; connections stay open. Switching off cuts the connections that
// lost something, since their clients would take later replies for the lost ones.
func (p *Proxy) DropReplies(on bool) {
	p.set(func() { p.dropReplies = on })
	if !on {
		p.cutIf(func(l *link) bool { return l.lostReplies.Load() })
	}
}

// DropMessages drops published messages while on. Everything else passes, and the
// connections stay open.
func (p *Proxy) DropMessages(on bool) {
	p.set(func() { p.dropMessages = on })
}

// Heal ends all faults, and cancels the losses and holds that have not happened yet.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.losses, p.holds = nil, nil
	p.mu.Unlock()
	p.Delay(0)
	p.Refuse(false)
	p.DropMessages(false)
	p.DropReplies(false)
	p.Freeze(false)
}

func (p *Proxy) set(change func()) {
	p.gate.Lock()
	defer p.gate.Unlock()
	change()
}

func (p *Proxy) cutIf(cond func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if cond(l) {
			l.close()
			delete(p.links, l)
		}
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	p.gate.RLock()
	target, stream := p.target, p.stream
	p.gate.RUnlock()
	server, err := net.DialTimeout("tcp", target, Limit)
	if err != nil {
		client.Close()
		return
	}
	l := &link{p: p, client: client, server: server.(*net.TCPConn), stream: stream, done: make(chan struct{})}
	if !p.add(l) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) add(l *link) bool {
	p.gate.RLock() // so that either Refuse sees the connection, or the connection sees Refuse
	defer p.gate.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refuse {
		p.links[l] = struct{}{}
	}
	return !p.refuse
}
