package redisio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// ConnectWith opens a client with the caller's options and the settings of Connect. If ctx ends first, the
// error is transient and wraps the cause of ctx.
func ConnectWith(ctx context.Context, options rueidis.ClientOption) (rueidis.Client, error) {
	if ctx == nil {
		return nil, errors.New("the context is nil")
	}
	if len(options.InitAddress) == 0 {
		return nil, errors.New("there is no address of a server")
	}
	options = requiredOptions(options)
	o := &opening{ctx: ctx, dial: dialer(options)}
	options.DialCtxFn = o.dialServer
	var client rueidis.Client
	var err error
	if options.Sentinel.MasterSet != "" {
		client, err = follow(ctx, options, o.dialServer)
	} else {
		client, err = newClient(options)
	}
	if err == nil {
		client, err = checkMode(ctx, client, options)
	} else {
		if client != nil { // with ForceSingleClient, which would continue to try
			client.Close()
		}
		client, err = nil, cannotConnect(options, o.refusal(options, err))
	}
	o.end()
	if ctx.Err() == nil {
		return client, err
	}
	if client != nil {
		client.Close()
	}
	return nil, cannotConnect(options, &Error{Transient: true, Err: context.Cause(ctx)})
}

// newClient opens a client. At least one of several addresses must answer. If another address is dead, rueidis may look
// for the servers of the cluster before any address has answered, or return the error of the dead address although a
// server has answered. So newClient tries up to three times within a second.
func newClient(options rueidis.ClientOption) (client rueidis.Client, err error) {
	began := time.Now()
	for try := 1; ; try++ {
		client, err = rueidis.NewClient(options)
		lost := err != nil && classifyDial(err).Transient || err == nil && client.Mode() == rueidis.ClientModeCluster && len(client.Nodes()) == 0
		if !lost || len(options.InitAddress) < 2 || try == 3 || time.Since(began) > time.Second {
			return client, err
		}
		if client != nil {
			client.Close()
		}
	}
}

// opening closes the connections of a client if a context ends before the client is opened, since
// rueidis.NewClient has no context.
type opening struct {
	ctx  context.Context
	dial dialFunc

	mu    sync.Mutex // guards the fields below
	ended bool
	stops []func() bool
}

type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dialer returns the function with which rueidis dials for these options.
func dialer(options rueidis.ClientOption) dialFunc {
	if options.DialCtxFn != nil {
		return options.DialCtxFn
	}
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		switch {
		case options.DialFn != nil:
			return options.DialFn(address, d, config)
		case config != nil:
			return dialTLS(ctx, address, d, config, options.InitAddress)
		}
		return d.DialContext(ctx, "tcp", address)
	}
}

func (o *opening) dialServer(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	if ended {
		return o.dial(ctx, address, d, config)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	conn, err := o.dial(ctx, address, d, config)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.stops = append(o.stops, context.AfterFunc(o.ctx, func() { _ = conn.Close() }))
	}
	return conn, nil
}

// end detaches the connections from the context.
func (o *opening) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, stop := range o.stops {
		stop()
	}
	o.stops = nil
}
