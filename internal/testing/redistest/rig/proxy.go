package rig

import (
	"net"
	"sync"
	"time"
)

// Proxy is a TCP proxy between clients and a server, with faults. When a method that changes them returns, the change
// is in force: no frame begins to pass by the old rules.
//
// It supports neither inline commands nor TLS. A client that is a replica of the server is detected.
type Proxy struct {
	options  ProxyOptions
	listener net.Listener
	wg       sync.WaitGroup

	// Held for reading while a frame is passed on, for writing while the rules change. It guards what follows.
	gate    sync.RWMutex
	rules   Rules
	changed chan struct{} // closed and renewed when the rules change
	target  string

	mu     sync.Mutex // guards what follows
	links  map[*link]struct{}
	losses []*Loss
	holds  []*Held
}

// ProxyOptions are the properties of a proxy that are no faults.
type ProxyOptions struct {
	// Far delays everything by so much in each direction.
	Far time.Duration
	// Bytes makes it pass the bytes as they come. That costs less, and no fault applies to single commands or replies.
	Bytes bool
	// Report is called if a connection does not carry the Redis protocol, which ends the connection; it may be nil.
	Report func(error)
}

// NewProxy starts a proxy to the server at target (host:port). The server need not run yet: a
// client that connects while it does not is disconnected.
func NewProxy(target string, o ProxyOptions) (*Proxy, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
	if err != nil {
		return nil, err
	}
	p := &Proxy{options: o, target: target, listener: l, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Close ends the proxy with its connections.
func (p *Proxy) Close() {
	p.Set(func(r *Rules) { r.Refuse = true })
	p.listener.Close()
	p.wg.Wait()
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

// Set changes the rules.
func (p *Proxy) Set(change func(*Rules)) {
	p.gate.Lock()
	before := p.rules
	change(&p.rules)
	now := p.rules
	p.rules.Cut = false
	close(p.changed)
	p.changed = make(chan struct{})
	p.gate.Unlock()
	switch {
	case now.Refuse, now.Cut:
		p.Cut()
	case before.DropReplies && !now.DropReplies:
		p.cutIf(func(l *link) bool { return l.lostReplies.Load() })
	}
}

// Heal ends all faults, and cancels the losses and holds that have not happened yet.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.losses, p.holds = nil, nil
	p.mu.Unlock()
	p.Set(func(r *Rules) { *r = Rules{} })
}

// Cut closes all present connections. New ones are accepted again.
func (p *Proxy) Cut() {
	p.cutIf(func(*link) bool { return true })
}

// Redirect sends new connections to another server. Present ones stay.
func (p *Proxy) Redirect(target string) {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.target = target
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
	target := p.target
	p.gate.RUnlock()
	server, err := net.DialTimeout("tcp", target, Limit)
	if err != nil {
		client.Close()
		return
	}
	l := &link{p: p, client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	if !p.add(l, target) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) add(l *link, target string) bool {
	p.gate.RLock() // so that either a change of the rules sees the connection, or the connection sees the change
	defer p.gate.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	accepted := !p.rules.Refuse && p.target == target
	if accepted {
		p.links[l] = struct{}{}
	}
	return accepted
}
