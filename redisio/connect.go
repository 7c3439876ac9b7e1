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

// deadConnection is how long a ping may take before its connection is given up.
// Connections are pinged when nothing has come for a second. All renewals of a key go
// over the same connection: one that died silently must not cost the lease. Nor must a process whose processors are
// busy lose one that is alive: with a hundred busy goroutines for each of them, a ping may take 4 s.
const deadConnection = 5 * time.Second

// helloTimeout is how long a server may take to say what it is.
const helloTimeout = 2 * time.Second

// Connect opens a client for a Redis URL,
//
//	redis://[user[:password]@]host[:port][/database][?option=value…]
//
// The scheme says what is there: redis is one server, or one of a cluster. redis-cluster is a
// cluster, also with a single address; anything else is refused. redis-sentinel are Sentinels, as
// is redis with master_set, the name that they have for the master. rediss, rediss-cluster and
// rediss-sentinel connect by TLS, to the Sentinels, too. A cluster and Sentinels may have several
// addresses, host:port,host:port, of which one must answer. A client of Sentinels listens to all of
// them, and moves with all its connections as soon as one names another master.
//
// The options are those of rueidis.ParseURL (client_name, dial_timeout, addr, master_set, …), and
//
//	sentinel_username, sentinel_password  for the Sentinels; the user and the password in front of
//	                                      the host are for the servers
//	tls_ca                                a file with the CAs to trust, instead of the system's
//	tls_cert, tls_key                     files with the certificate of this client, and its key
//	tls_server_name                       the name in the certificates of the servers. By default
//	                                      that in the server's address, or in one of the URL's
//
// Any other option is refused. The client has the settings that suit Lockkeeper: no retries and
// no client-side cache. The caller closes it.
//
// The error never contains the URL, which may contain a password.
func Connect(redisURL string) (rueidis.Client, error) {
	options, err := Options(redisURL)
	if err != nil {
		return nil, err
	}
	return ConnectWith(context.Background(), options)
}

// ConnectLater is like Connect, for a single server that may be down. If the server does not
// answer within dial_timeout (5 s by default), it returns the client all the same, and every
// call tries to connect until one succeeds; until then calls fail with a transient error. It
// supports neither clusters nor Sentinel, where the first server provides the addresses of the
// others.
func ConnectLater(redisURL string) (rueidis.Client, error) {
	options, err := Options(redisURL)
	if err != nil {
		return nil, err
	}
	options = suited(options)
	if options.Sentinel.MasterSet != "" || len(options.InitAddress) > 1 {
		return nil, errors.New("only a single server can be connected to later: the URL names several, or Sentinel's")
	}
	options.ForceSingleClient = true // rueidis makes such a client even if it cannot connect
	client, err := rueidis.NewClient(options)
	switch {
	case err == nil:
		return asMeant(context.Background(), client, options)
	case client == nil:
	case sortDial(err).Transient:
		return client, nil
	default:
		client.Close()
	}
	return nil, cannotConnect(options, err)
}

func cannotConnect(options rueidis.ClientOption, err error) error {
	return fmt.Errorf("cannot connect to Redis at %v: %w", slices.Compact(slices.Clone(options.InitAddress)), atFirst(options, sortDial(err)))
}

// atFirst adds to the error of a client's first connections what may be the cause there.
func atFirst(options rueidis.ClientOption, err *Error) *Error {
	hint, sentinels := err.Hint, options.Sentinel.MasterSet != ""
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	switch encrypted := options.TLSConfig != nil || sentinels && options.Sentinel.TLSConfig != nil; {
	case encrypted && (closed || errors.Is(err, errTimeout)):
		hint = "this client speaks TLS: does the server, at this port? Without TLS the URL begins with redis://"
	case closed:
		hint = "it was closed at the first command, HELLO: a server or a proxy that does not know HELLO must say so; " +
			"one that wants TLS needs a URL that begins with rediss://"
	case sentinels && strings.Contains(err.err.Error(), "NOPERM"):
		hint += "; on the Sentinels themselves the user needs " + SentinelRules
	}
	return &Error{Transient: err.Transient, Unsure: err.Unsure, Hint: hint, err: err.err}
}

// sortDial is Sort for a client that has never been connected: what TLS does not trust then,
// it will not trust later.
func sortDial(err error) *Error {
	if untrusted(err) {
		return &Error{Hint: "TLS: check tls_ca, tls_cert, tls_key and tls_server_name in the URL, or RootCAs, Certificates and ServerName of the tls.Config", err: err}
	}
	return Sort(err)
}

// suited sets what Lockkeeper needs: no retries below the lock, and no client-side cache.
func suited(options rueidis.ClientOption) rueidis.ClientOption {
	options.DisableRetry = true
	options.DisableCache = true
	options.PipelineMultiplex = -1 // one connection: what is sent about a key arrives in that order
	if options.BlockingPoolCleanup == 0 {
		options.BlockingPoolCleanup = time.Minute
	}
	if options.ConnWriteTimeout == 0 {
		options.ConnWriteTimeout = deadConnection
	}
	// rueidis has no defaults for the connections to Sentinels: it would wait for minutes for one
	// that does not answer, and never notice that one has died.
	options.Sentinel.Dialer.Timeout = cmp.Or(options.Sentinel.Dialer.Timeout, options.Dialer.Timeout, rueidis.DefaultDialTimeout)
	options.Sentinel.Dialer.KeepAlive = cmp.Or(options.Sentinel.Dialer.KeepAlive, options.Dialer.KeepAlive, rueidis.DefaultTCPKeepAlive)
	return options
}
