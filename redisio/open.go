package redisio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/redis/rueidis"
)

// ConnectWith opens a client with the caller's options, and sets those that Connect sets. If
// ctx ends first, the error is transient and wraps the cause of ctx.
func ConnectWith(ctx context.Context, options rueidis.ClientOption) (rueidis.Client, error) {
	if len(options.InitAddress) == 0 {
		return nil, errors.New("there is no address of a server")
	}
	options = suited(options)
	o := &opening{ctx: ctx, dial: dialer(options)}
	options.DialCtxFn = o.dialServer
	client, err := rueidis.NewClient(options)
	if err == nil {
		client, err = serverOnly(ctx, client, options)
	} else {
		if client != nil { // such as a ForceSingleClient, which would go on trying
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
	return nil, cannotConnect(options, &Error{Transient: true, err: context.Cause(ctx)})
}

// opening has the connections of a client end with a context until the client is opened:
// rueidis.NewClient knows no context.
type opening struct {
	ctx  context.Context
	dial dialFunc

	mu    sync.Mutex // guards what follows
	ended bool
	stops []func() bool
}

type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dialer returns the function by which rueidis dials with these options.
func dialer(options rueidis.ClientOption) dialFunc {
	if options.DialCtxFn != nil {
		return options.DialCtxFn
	}
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		switch {
		case options.DialFn != nil:
			return options.DialFn(address, d, config)
		case config != nil:
			return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", address)
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

// end lets the connections outlive the context.
func (o *opening) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, stop := range o.stops {
		stop()
	}
	o.stops = nil
}

// serverOnly returns the client, unless it has connected to a Sentinel that was taken for a
// server: then it closes the client. A server that does not say what it is passes.
func serverOnly(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) (rueidis.Client, error) {
	if options.Sentinel.MasterSet != "" || client.Mode() != rueidis.ClientModeStandalone {
		return client, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	hello, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return client, nil
	}
	mode := hello["mode"]
	if name, err := mode.ToString(); err == nil && name == "sentinel" {
		client.Close()
		return nil, errors.New("this is a Sentinel: its URL needs the option master_set=NAME, the name of the master")
	}
	return client, nil
}

// untrusted reports whether one side of a TLS connection does not accept the certificate of the
// other, which trying again does not mend.
func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		remote       *net.OpError
	)
	return errors.As(err, &verification) ||
		errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Error(), "certificate")
}

// refusal returns why the server has refused the client's certificate, or err if it has not. In
// TLS 1.3 it does so after the handshake, and its words are lost if the client writes first.
func (o *opening) refusal(options rueidis.ClientOption, err error) error {
	if options.TLSConfig == nil || untrusted(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(o.ctx, helloTimeout)
	defer cancel()
	conn, failed := o.dial(ctx, options.InitAddress[0], &net.Dialer{}, options.TLSConfig)
	if failed != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, failed = conn.Read(make([]byte, 1)); untrusted(failed) {
		return failed
	}
	return err
}
