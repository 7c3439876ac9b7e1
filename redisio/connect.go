package redisio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

// deadConnection is the time that a ping may take before its connection is closed. rueidis pings a connection that has
// received nothing for a second. All renewals of a key use the same connection, so a dead connection must be noticed
// before the lease ends. But a busy process must not close a live connection: with a hundred busy goroutines per
// processor, a ping may take 4 s.
const deadConnection = 5 * time.Second

// helloTimeout is the time that a server may take to reply to HELLO or ROLE.
const helloTimeout = 2 * time.Second

// Connect opens a client for a Redis URL,
//
//	redis://[user[:password]@]host[:port][/database][?option=value…]
//
// The scheme redis is for one server, which may belong to a cluster. The scheme redis-cluster is for a cluster, even
// with a single address; a server outside a cluster is refused. The scheme redis-sentinel is for Sentinels; so is redis
// with the option master_set, the Sentinels' name for the master. rediss, rediss-cluster and rediss-sentinel use TLS,
// also to the Sentinels. A cluster and Sentinels may have several addresses, host:port,host:port; at least one address
// must answer. A client of Sentinels listens to all of them, and moves all its connections as soon as a Sentinel names
// another master.
//
// A URL takes the options of rueidis.ParseURL (addr, client_name, db, dial_timeout, master_set, protocol,
// skip_verify, write_timeout, …), and
//
//	password_file                         a file with the password, which is read for each connection: it
//	                                      may be replaced while the program runs; a final end of line is left out
//	sentinel_username, sentinel_password  for the Sentinels; the user and the password before the
//	                                      host are for the servers
//	tls_ca                                a file with the CAs to trust, instead of the system's
//	tls_cert, tls_key                     files with the certificate of this client, and its key
//	tls_server_name                       the name in the certificates of the servers. Default: the
//	                                      host in the server's address, or in an address of the URL
//
// Any other option is refused. The client has the settings that Lockkeeper needs: no retries and no client-side cache.
// The caller closes it. A server that does not answer is given up after a few seconds.
//
// The error wraps an [Error], unless the URL or a TLS file cannot be used. It never contains the URL, which may contain
// a password.
func Connect(redisURL string) (rueidis.Client, error) {
	options, err := Options(redisURL)
	if err != nil {
		return nil, err
	}
	return ConnectWith(context.Background(), options)
}

// ConnectLater is like Connect, for a single server that may be down. If the server does not answer within dial_timeout
// (5 s by default), ConnectLater still returns the client, and every call tries to connect until a call succeeds; until
// then calls fail with a transient error. ConnectLater supports neither clusters nor Sentinel, where the first server
// provides the addresses of the others.
func ConnectLater(redisURL string) (rueidis.Client, error) {
	options, err := Options(redisURL)
	if err != nil {
		return nil, err
	}
	options = requiredOptions(options)
	if options.Sentinel.MasterSet != "" || len(options.InitAddress) > 1 {
		return nil, errors.New("only a single server can be connected to later: the URL names several, or Sentinel's")
	}
	options.ForceSingleClient = true // rueidis returns such a client even if it cannot connect
	client, err := rueidis.NewClient(options)
	switch {
	case err == nil:
		return checkMode(context.Background(), client, options)
	case client == nil:
	case classifyDial(err).Transient:
		return client, nil
	default:
		client.Close()
	}
	return nil, cannotConnect(options, err)
}

func cannotConnect(options rueidis.ClientOption, err error) error {
	return fmt.Errorf("cannot connect to Redis at %v: %w",
		slices.Compact(slices.Clone(options.InitAddress)), withConnectHint(options, classifyDial(err)))
}

// withConnectHint adds a hint at the likely cause to an error of a client's first connection.
func withConnectHint(options rueidis.ClientOption, err *Error) *Error {
	hint, sentinels := err.Hint, options.Sentinel.MasterSet != ""
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	switch encrypted := options.TLSConfig != nil || sentinels && options.Sentinel.TLSConfig != nil; {
	case encrypted && (closed || errors.Is(err, errTimeout)):
		hint = "this client speaks TLS: does the server, at this port? Without TLS the URL begins with redis://"
	case closed:
		hint = "it was closed at the first command, HELLO: a server or a proxy that does not know HELLO must say so; " +
			"one that wants TLS needs a URL that begins with rediss://"
	case sentinels && strings.HasPrefix(err.Err.Error(), "NOPERM"):
		hint += "; on the Sentinels themselves the user needs " + SentinelRules
	}
	return &Error{Transient: err.Transient, Unsure: err.Unsure, Hint: hint, Err: err.Err}
}

// classifyDial is Classify for a client that has never been connected: a certificate that is not trusted then is
// a permanent error.
func classifyDial(err error) *Error {
	if untrusted(err) {
		return &Error{
			Hint: "TLS: check tls_ca, tls_cert, tls_key and tls_server_name in the URL, " +
				"or RootCAs, Certificates and ServerName of the tls.Config",
			Err: err,
		}
	}
	return Classify(err)
}

// requiredOptions returns the options with the settings that Lockkeeper needs: the lock decides about retries,
// and there is no client-side cache.
func requiredOptions(options rueidis.ClientOption) rueidis.ClientOption {
	options.DisableRetry = true
	options.DisableCache = true
	options.PipelineMultiplex = -1 // one connection, which keeps the order of the commands about a key
	if options.BlockingPoolCleanup == 0 {
		options.BlockingPoolCleanup = time.Minute
	}
	if options.ConnWriteTimeout == 0 {
		options.ConnWriteTimeout = deadConnection
	}
	// rueidis has no defaults for connections to Sentinels. Without these settings it would wait for minutes for a
	// Sentinel that does not answer, and not notice a dead connection.
	options.Sentinel.Dialer.Timeout = cmp.Or(options.Sentinel.Dialer.Timeout, options.Dialer.Timeout, rueidis.DefaultDialTimeout)
	options.Sentinel.Dialer.KeepAlive = cmp.Or(options.Sentinel.Dialer.KeepAlive, options.Dialer.KeepAlive, rueidis.DefaultTCPKeepAlive)
	return options
}
