package redisio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// deadConnection is how long a ping may take before its connection is given up.
// Connections are pinged when nothing has come for a second. All renewals of a key go
// over the same connection: one that died silently must not cost the lease.
const deadConnection = 2 * time.Second

// helloTimeout is how long a server may take to say what it is.
const helloTimeout = 2 * time.Second

// Connect opens a client for a Redis URL,
// redis[s]://[user[:password]@]host[:port][/database][?option=value…]. The options are those of
// rueidis.ParseURL (client_name, dial_timeout, addr, master_set for Sentinel, …); any other is
// refused. The client has the settings that suit Lockkeeper: no retries and no client-side
// cache. The caller closes it.
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
		return serverOnly(context.Background(), client, options)
	case client == nil:
	case sortDial(err).Transient:
		return client, nil
	default:
		client.Close()
	}
	return nil, cannotConnect(options, err)
}

func cannotConnect(options rueidis.ClientOption, err error) error {
	return fmt.Errorf("cannot connect to Redis at %v: %w", options.InitAddress, sortDial(err))
}

// sortDial is Sort for a client that has never been connected: what TLS does not trust then,
// it will not trust later.
func sortDial(err error) *Error {
	if untrusted(err) {
		return &Error{Hint: "check RootCAs, Certificates and ServerName of the tls.Config", err: err}
	}
	return Sort(err)
}

// urlOptions are what rueidis.ParseURL reads of a URL's query, and the values that we
// accept, if not any: Lockkeeper needs a client without retries and cache.
var urlOptions = map[string][]string{
	"addr": nil, "client_cache": {"0"}, "client_name": nil, "db": nil, "dial_timeout": nil, "master_set": nil,
	"max_retries": {"0"}, "protocol": {"2", "3"}, "skip_verify": nil, "write_timeout": nil,
}

// checkOptions refuses a query that rueidis, or we, would ignore.
func checkOptions(u *url.URL, options *rueidis.ClientOption) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values, known := urlOptions[name]
		switch {
		case !known:
			return fmt.Errorf("unknown option %q", name)
		case values != nil && slices.ContainsFunc(query[name], func(v string) bool { return !slices.Contains(values, v) }):
			return fmt.Errorf("option %s can only be %s", name, strings.Join(values, " or "))
		}
	}
	if query.Has("skip_verify") && options.TLSConfig == nil {
		return errors.New("option skip_verify is for rediss")
	}
	return nil
}

// Options reads a Redis URL; see Connect.
func Options(redisURL string) (options rueidis.ClientOption, err error) {
	u, err := url.Parse(redisURL)
	if err == nil {
		options, err = rueidis.ParseURL(redisURL)
	}
	if err == nil {
		err = checkOptions(u, &options)
	}
	// A password whose special characters were not encoded is taken for a port, a
	// path, even a host: with an @ in the URL, nothing of it may be quoted. Nor if it
	// is encoded, which too much of the URL may be.
	at, encoded := strings.Contains(redisURL, "@"), strings.Contains(redisURL, "%40")
	if (at || encoded) && (err != nil || u.Fragment != "") || at && strings.Contains(u.EscapedPath()+u.RawQuery, "@") ||
		encoded && strings.Contains(strings.Join(options.InitAddress, ","), "@") {
		err = errors.New("what is wrong is not shown, for the sake of the password")
	}
	if err != nil {
		var parseError *url.Error
		if errors.As(err, &parseError) {
			err = parseError.Err // without the URL
		}
		return options, fmt.Errorf("redis URL cannot be used: %w (expected redis[s]://[user[:password]@]host[:port]"+
			"[/database number][?option=value], with special characters percent-encoded; the options are %s)", err,
			strings.Join(slices.Sorted(maps.Keys(urlOptions)), ", "))
	}
	return options, nil
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
	return options
}
