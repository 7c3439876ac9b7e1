package redisio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// maxPause bounds the time without calls during a failover. Sentinel promotes the replica 0.1 s after it has chosen it,
// and notices the new master within a second.
const maxPause = 3 * time.Second

var errNotMaster = &Error{Transient: true, Err: errors.New("the server that the Sentinels name as the master is a replica")}

// follower connects a client to the master that Sentinels name. When the master changes, it closes all
// connections to the former master at once, and replies from it are discarded. rueidis's own client
// for Sentinels moves only when the failover has ended, seconds after the new master has taken over, and
// moves its subscriptions even later.
//
// From the moment when a Sentinel has chosen the replica to promote until it names the replica as the master, nothing
// is sent, since the old master would accept a write that the new one does not have.
type follower struct {
	set               string
	dial              dialFunc
	servers, watchers rueidis.ClientOption // without addresses
	// disconnects counts the times that all connections to the master were closed.
	disconnects atomic.Uint64

	ctx         context.Context // ends with close
	end         context.CancelFunc
	wg          sync.WaitGroup
	masterFound chan struct{} // closed when there is a master
	// failed receives the first failure of each configured Sentinel.
	failed   chan error
	updating sync.Mutex // held by updateMaster

	mu        sync.Mutex // guards the fields below
	sentinels map[string]*sentinel
	master    string
	epoch     uint64 // of the configuration in which the Sentinels name the master
	demoted   bool   // the master has replied that it is a replica
	// connections is the context of the current connections; endConnections cancels it.
	connections    context.Context
	endConnections context.CancelFunc
	paused         chan struct{} // closed at the end of a pause; nil if there is none
	client         rueidis.Client
	onMove         map[*func()]struct{}
}

// sentinelClient is a client whose connections a follower moves. Package redisclient calls OnMove, Disconnects
// and RecordDemotion.
type sentinelClient struct {
	rueidis.Client
	follower *follower
}

// Mode returns the mode of a client for Sentinels; the embedded client is for a single server.
func (c *sentinelClient) Mode() rueidis.ClientMode { return rueidis.ClientModeSentinel }

// OnMove registers a function to be called after every move; stop unregisters it. It must not block.
func (c *sentinelClient) OnMove(moved func()) (stop func()) { return c.follower.registerMove(moved) }

// Disconnects counts the times that all connections to the master were closed.
func (c *sentinelClient) Disconnects() *atomic.Uint64 { return &c.follower.disconnects }

// RecordDemotion records that the master has replied that it is a replica.
func (c *sentinelClient) RecordDemotion() { c.follower.recordDemotion() }

// Close closes the client, and waits for its goroutines.
func (c *sentinelClient) Close() {
	c.follower.close()
	c.Client.Close()
}

// follow opens a client for the master that Sentinels name, with the options that requiredOptions has returned.
func follow(ctx context.Context, options rueidis.ClientOption, dial dialFunc) (rueidis.Client, error) {
	f := &follower{
		set: options.Sentinel.MasterSet, dial: dial, masterFound: make(chan struct{}), failed: make(chan error, len(options.InitAddress)),
		servers: options, watchers: ofSentinels(options), sentinels: map[string]*sentinel{}, onMove: map[*func()]struct{}{},
	}
	f.servers.Sentinel, f.servers.ForceSingleClient = rueidis.SentinelOption{}, true
	f.ctx, f.end = context.WithCancel(context.Background())
	f.connections, f.endConnections = context.WithCancel(f.ctx)
	err := f.find(ctx, options.InitAddress)
	var client rueidis.Client
	if err == nil {
		o := f.servers
		o.InitAddress, o.DialCtxFn = []string{f.set}, f.dialMaster
		if client, err = rueidis.NewClient(o); err == nil {
			f.mu.Lock()
			f.client = client
			f.mu.Unlock()
			return &sentinelClient{Client: client, follower: f}, nil
		}
	}
	f.close()
	if client != nil {
		client.Close()
	}
	return nil, err
}

// find asks the configured Sentinels, and waits until a Sentinel names a master or all have failed.
func (f *follower) find(ctx context.Context, addresses []string) (err error) {
	for range f.watch(addresses, true) {
		select {
		case <-f.masterFound:
			return nil
		case failed := <-f.failed:
			if err == nil || !classifyDial(failed).Transient {
				err = failed
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// close stops the goroutines. The caller closes the client.
func (f *follower) close() {
	f.end()
	f.wg.Wait()
}

// dialMaster connects to the master, for any address. It waits for the end of a pause.
func (f *follower) dialMaster(ctx context.Context, _ string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	for {
		f.mu.Lock()
		master, connections, paused := f.master, f.connections, f.paused
		f.mu.Unlock()
		if paused == nil {
			conn, err := dialWithin(ctx, connections, f.dial, master, d, config)
			if connections.Err() == nil || f.ctx.Err() != nil || ctx.Err() != nil {
				return conn, err
			}
			continue
		}
		select {
		case <-paused:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-f.ctx.Done():
			return nil, rueidis.ErrClosing
		}
	}
}

// dialWithin dials a connection that is closed when the context within ends.
func dialWithin(ctx, within context.Context, dial dialFunc, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(within, cancel)()
	conn, err := dial(ctx, address, d, config)
	if err != nil {
		return nil, err
	}
	return &bound{Conn: conn, unbind: context.AfterFunc(within, func() { _ = conn.Close() })}, nil
}

// bound is a connection that is closed when a context ends.
type bound struct {
	net.Conn
	unbind func() bool
}

func (b *bound) Close() error {
	b.unbind()
	return b.Conn.Close()
}

// pause delays calls after a Sentinel has chosen the replica to promote, until there is another master,
// but not longer than maxPause.
func (f *follower) pause(master, replica string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused != nil || master != f.master || replica == master {
		return
	}
	paused := make(chan struct{})
	f.paused = paused
	f.disconnectAll()
	time.AfterFunc(maxPause, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resume(paused)
	})
}

// resume ends a pause unless it has ended; mu is held.
func (f *follower) resume(paused chan struct{}) {
	if f.paused == paused && paused != nil {
		close(paused)
		f.paused = nil
	}
}

// disconnectAll closes all connections to the master; mu is held. Because of the PING, rueidis notices the closed
// connections before the next call fails.
func (f *follower) disconnectAll() {
	f.disconnects.Add(1)
	f.endConnections()
	f.connections, f.endConnections = context.WithCancel(f.ctx)
	if client := f.client; client != nil && f.ctx.Err() == nil {
		f.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), maxPause+helloTimeout)
			defer cancel()
			client.Do(ctx, client.B().Ping().Build())
		})
	}
}

// recordDemotion records that the master has replied that it is a replica.
func (f *follower) recordDemotion() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.demoted = true
	for _, s := range f.sentinels {
		s.wake()
	}
}

// nextMaster returns the new master and the epoch of its configuration, or "" if the master stays. The latest
// configuration is used. An earlier configuration is used if the master has replied that it is a replica, or if a
// majority of the Sentinels answers and no Sentinel names the master.
func (f *follower) nextMaster() (master string, epoch uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answers, named := 0, false
	for _, s := range f.sentinels {
		if s.master == "" {
			continue
		}
		answers++
		if s.master == f.master {
			named, f.epoch = true, max(f.epoch, s.epoch)
		}
		if master == "" || s.epoch > epoch || s.epoch == epoch && s.master == f.master {
			master, epoch = s.master, s.epoch
		}
	}
	if master == f.master || f.master != "" && epoch <= f.epoch && !f.demoted && (named || 2*answers <= len(f.sentinels)) {
		return "", 0
	}
	return master, epoch
}

func (f *follower) hasMaster() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master != ""
}

// updateMaster moves the client to another master if nextMaster returns one, and the server confirms its role.
func (f *follower) updateMaster() error {
	f.updating.Lock()
	defer f.updating.Unlock()
	master, epoch := f.nextMaster()
	if master == "" {
		return nil
	}
	if err := f.askRole(master); err != nil {
		return err
	}
	f.mu.Lock()
	first := f.master == ""
	f.master, f.epoch, f.demoted = master, epoch, false
	if first {
		close(f.masterFound)
		f.mu.Unlock()
		return nil
	}
	if f.paused == nil {
		f.disconnectAll()
	}
	f.resume(f.paused) // pause has closed the connections
	var all []func()
	for moved := range f.onMove {
		all = append(all, *moved)
	}
	f.mu.Unlock()
	for _, moved := range all {
		moved()
	}
	return nil
}

// askRole returns an error unless the server replies that it is a master.
func (f *follower) askRole(address string) error {
	ctx, cancel := context.WithTimeout(f.ctx, helloTimeout)
	defer cancel()
	client, err := connectWithin(ctx, f.servers, f.dial, address)
	if err != nil {
		return err
	}
	defer client.Close()
	defer cancel() // first: it closes the connection
	role, err := client.Do(ctx, client.B().Role().Build()).ToArray()
	if err != nil {
		return err
	}
	if len(role) > 0 {
		if name, _ := role[0].ToString(); name == "master" {
			return nil
		}
	}
	return errNotMaster
}

// connectWithin opens a client of one server. Its connections are closed when the context within ends.
func connectWithin(within context.Context, options rueidis.ClientOption, dial dialFunc, address string) (rueidis.Client, error) {
	options.InitAddress = []string{address}
	options.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		return dialWithin(ctx, within, dial, address, d, config)
	}
	client, err := rueidis.NewClient(options)
	if err != nil && client != nil {
		client.Close()
	}
	return client, err
}

// registerMove registers a function to be called after every move; stop unregisters it. It must not block.
func (f *follower) registerMove(moved func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onMove[&moved] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.onMove, &moved)
	}
}
