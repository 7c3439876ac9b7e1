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

// pauseMost bounds how long nothing is sent while a failover is under way. Sentinel promotes the
// replica a tenth of a second after it has chosen it, and sees that within a second.
const pauseMost = 3 * time.Second

var (
	errNotMaster = &Error{Transient: true, err: errors.New("the server that the Sentinels name as the master is none")}
	errMoved     = &Error{Transient: true, Unsure: true, err: errors.New("a failover came before the reply")}
)

// follower keeps the connections of a client with the master that Sentinels name. All of them
// move at once: those to a former master are closed, and what it still answers does not count.
// rueidis's own client for Sentinels moves when the failover has ended, which is seconds after
// the new master has taken over, and its subscriptions later still.
//
// From the moment a Sentinel has chosen the replica to promote until it names that as the master,
// nothing is sent: the old master would take it, and soon forget it.
type follower struct {
	set               string
	dial              dialFunc
	servers, watchers rueidis.ClientOption // without an address
	// cuts is how often all connections to the master were closed.
	cuts atomic.Uint64

	ctx   context.Context // ends with close
	end   context.CancelFunc
	wg    sync.WaitGroup
	found chan struct{} // closed when there is a master
	// failed has the first failure of each Sentinel that the user has named.
	failed   chan error
	settling sync.Mutex // held while it is found out whether to move

	mu        sync.Mutex // guards what follows
	sentinels map[string]*sentinel
	master    string
	epoch     uint64 // of the configuration in which the Sentinels name it
	doubted   bool   // it has said that it is a replica
	// present ends with the connections of the moment.
	present context.Context
	cut     context.CancelFunc
	paused  chan struct{} // closed when calls are let through again; nil if they are
	client  rueidis.Client
	onMove  map[*func()]struct{}
}

// following is the client that a follower moves.
type following struct {
	rueidis.Client
	follower *follower
}

// Mode is that of a client that asks Sentinels: the one inside is for a single server.
func (c *following) Mode() rueidis.ClientMode { return rueidis.ClientModeSentinel }

// Close closes the client, and waits for its goroutines.
func (c *following) Close() {
	c.follower.close()
	c.Client.Close()
}

// follow opens a client for the master that Sentinels name. The options are suited.
func follow(ctx context.Context, options rueidis.ClientOption, dial dialFunc) (rueidis.Client, error) {
	f := &follower{
		set: options.Sentinel.MasterSet, dial: dial, found: make(chan struct{}), failed: make(chan error, len(options.InitAddress)),
		servers: options, watchers: ofSentinels(options), sentinels: map[string]*sentinel{}, onMove: map[*func()]struct{}{},
	}
	f.servers.Sentinel, f.servers.ForceSingleClient = rueidis.SentinelOption{}, true
	f.ctx, f.end = context.WithCancel(context.Background())
	f.present, f.cut = context.WithCancel(f.ctx)
	err := f.find(ctx, options.InitAddress)
	var client rueidis.Client
	if err == nil {
		o := f.servers
		o.InitAddress, o.DialCtxFn = []string{f.set}, f.dialMaster
		if client, err = rueidis.NewClient(o); err == nil {
			f.mu.Lock()
			f.client = client
			f.mu.Unlock()
			return &following{Client: client, follower: f}, nil
		}
	}
	f.close()
	if client != nil {
		client.Close()
	}
	return nil, err
}

// find starts with the Sentinels that the user has named, and waits until one of them names a
// master, or none does.
func (f *follower) find(ctx context.Context, addresses []string) (err error) {
	for range f.watch(addresses, true) {
		select {
		case <-f.found:
			return nil
		case failed := <-f.failed:
			if err == nil || !sortDial(failed).Transient {
				err = failed
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// close stops following. The client is left to the caller.
func (f *follower) close() {
	f.end()
	f.wg.Wait()
}

// dialMaster is how the client dials, whatever the address. It waits while nothing may be sent.
func (f *follower) dialMaster(ctx context.Context, _ string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	for {
		f.mu.Lock()
		master, present, paused := f.master, f.present, f.paused
		f.mu.Unlock()
		if paused == nil {
			conn, err := dialWithin(ctx, present, f.dial, master, d, config)
			if present.Err() == nil || f.ctx.Err() != nil || ctx.Err() != nil {
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

// dialWithin dials a connection that is closed when a context ends.
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

// pause keeps calls back, since a Sentinel has chosen the replica to promote, until there is
// another master, or for pauseMost.
func (f *follower) pause(master, replica string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused != nil || master != f.master || replica == master {
		return
	}
	paused := make(chan struct{})
	f.paused = paused
	f.cutAll()
	time.AfterFunc(pauseMost, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resume(paused)
	})
}

// resume ends a pause, unless that has ended; mu is held.
func (f *follower) resume(paused chan struct{}) {
	if f.paused == paused && paused != nil {
		close(paused)
		f.paused = nil
	}
}

// cutAll closes all connections to the master; mu is held. The PING makes rueidis see that before
// a call has to.
func (f *follower) cutAll() {
	f.cuts.Add(1)
	f.cut()
	f.present, f.cut = context.WithCancel(f.ctx)
	if client := f.client; client != nil && f.ctx.Err() == nil {
		f.wg.Go(func() {
			ctx := newUntil(time.Now().Add(pauseMost + helloTimeout))
			defer ctx.forget()
			client.Do(ctx, client.B().Ping().Build())
		})
	}
}

// doubt takes note that the master says that it is a replica.
func (f *follower) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubted = true
	for _, s := range f.sentinels {
		s.askSoon()
	}
}

// next is the server that is to be the master from now on, and in which configuration; "" if that
// does not change. The latest configuration counts. An earlier one does if the master has said
// that it is a replica, or if most Sentinels answer, and none names it.
func (f *follower) next() (master string, epoch uint64) {
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
	if master == f.master || f.master != "" && epoch <= f.epoch && !f.doubted && (named || 2*answers <= len(f.sentinels)) {
		return "", 0
	}
	return master, epoch
}

func (f *follower) hasMaster() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.master != ""
}

// settle moves to another server if that is the master now.
func (f *follower) settle() error {
	f.settling.Lock()
	defer f.settling.Unlock()
	master, epoch := f.next()
	if master == "" {
		return nil
	}
	if err := f.askRole(master); err != nil {
		return err
	}
	f.mu.Lock()
	first := f.master == ""
	f.master, f.epoch, f.doubted = master, epoch, false
	if first {
		close(f.found)
		f.mu.Unlock()
		return nil
	}
	if f.paused == nil {
		f.cutAll()
	}
	f.resume(f.paused) // there has been no connection since it began
	var tell []func()
	for moved := range f.onMove {
		tell = append(tell, *moved)
	}
	f.mu.Unlock()
	for _, moved := range tell {
		moved()
	}
	return nil
}

// askRole returns an error unless a server says that it is a master.
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

// connectWithin opens a client of one server, whose connections are closed when a context ends.
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

// tell has a function called after every move, until stop is called. It must not block.
func (f *follower) tell(moved func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onMove[&moved] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.onMove, &moved)
	}
}
