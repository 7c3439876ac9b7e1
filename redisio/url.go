package redisio

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

// urlOptions are the options of a URL, with the accepted values if they are restricted: Lockkeeper
// needs a client without retries and cache.
var urlOptions = map[string][]string{
	"addr": nil, "client_cache": {"0"}, "client_name": nil, "db": nil, "dial_timeout": nil, "master_set": nil,
	"max_retries": {"0"}, "password_file": nil, "protocol": {"2", "3"}, "sentinel_password": nil, "sentinel_username": nil, "skip_verify": nil,
	"tls_ca": nil, "tls_cert": nil, "tls_key": nil, "tls_server_name": nil, "write_timeout": nil,
}

// The options that need TLS, and the options that need Sentinels.
var (
	tlsOptions      = []string{"skip_verify", "tls_ca", "tls_cert", "tls_key", "tls_server_name"}
	sentinelOptions = []string{"sentinel_password", "sentinel_username"}
)

// The ports of addresses without one.
const (
	serverPort   = "6379"
	sentinelPort = "26379"
)

// Options reads a Redis URL; see Connect.
func Options(redisURL string) (options rueidis.ClientOption, err error) {
	options, err = parse(redisURL)
	// A password whose special characters are not encoded is parsed as a port, a path or a host: if there is an @ in
	// the URL, no part of it may be quoted. The same applies to an encoded @, since too much of the URL may be encoded.
	// If there is no @ behind the addresses, the options are certainly options, and the name of a file may be shown.
	_, _, rest := split(redisURL)
	addresses := strings.Join(options.InitAddress, ",")
	at, encoded := strings.Contains(redisURL, "@"), strings.Contains(redisURL, "%40")
	aboutFile := (errors.Is(err, errPasswordFile) || errors.As(err, new(*fs.PathError))) &&
		!strings.Contains(rest, "@") && !strings.Contains(rest, "%40")
	if !aboutFile && ((at || encoded || strings.Contains(redisURL, "sentinel_password")) && err != nil ||
		(at || encoded) && strings.Contains(redisURL, "#") || strings.Contains(rest, "@") ||
		encoded && (strings.Contains(addresses, "@") || strings.Contains(addresses, "%40"))) {
		err = errors.New("the cause is not shown, because it may contain the password")
	}
	if err != nil {
		var parseError *url.Error
		if errors.As(err, &parseError) {
			err = parseError.Err // without the URL
		}
		if shown := printable.Text(err.Error()); shown != err.Error() {
			err = errors.New(shown) // the error may quote the URL
		}
		if aboutFile { // the form of the URL is right
			return options, fmt.Errorf("redis URL cannot be used: %w", err)
		}
		return options, fmt.Errorf("redis URL cannot be used: %w (expected redis[s]://[user[:password]@]host[:port]"+
			"[,host[:port]…][/database number][?option=value], with special characters percent-encoded; "+
			"the scheme may end in -cluster or -sentinel; the options are %s)", err,
			strings.Join(slices.Sorted(maps.Keys(urlOptions)), ", "))
	}
	return options, nil
}

func parse(redisURL string) (rueidis.ClientOption, error) {
	plain, of := form(redisURL)
	u, err := url.Parse(plain)
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	options, err := rueidis.ParseURL(plain)
	if err != nil {
		return options, err
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return options, err
	}
	if _, rest, _ := strings.Cut(redisURL, ":"); u.Scheme != "unix" && !strings.HasPrefix(rest, "//") {
		return options, errors.New("there is no // behind the scheme, so it names no server")
	}
	if u.Scheme != "unix" && u.Hostname() == "" { // rueidis would connect to localhost
		return options, errors.New("it names no server: there is no host behind the //")
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(u.Path, "/")); err == nil && u.Scheme != "unix" && n != options.SelectDB {
		return options, errors.New("the path names another database than option db")
	}
	switch options.Sentinel.Username, options.Sentinel.Password = query.Get("sentinel_username"), query.Get("sentinel_password"); {
	case of == "sentinel" && options.Sentinel.MasterSet == "":
		return options, errNoMaster
	case of == "cluster" && options.Sentinel.MasterSet != "":
		return options, errors.New("option master_set is for Sentinels")
	case of == "cluster" && len(options.InitAddress) == 1:
		// With a single address, rueidis accepts a server that refuses CLUSTER as a single
		// server. With two addresses it does not.
		options.InitAddress = append(options.InitAddress, options.InitAddress[0])
	}
	if err = checkOptions(query, &options); err != nil {
		return options, err
	}
	if query.Has("password_file") {
		if err = usePasswordFile(&options, query.Get("password_file")); err != nil {
			return options, err
		}
	}
	if options.TLSConfig == nil {
		return options, nil
	}
	if err = readTLS(query, options.TLSConfig); err == nil && options.Sentinel.MasterSet != "" {
		options.Sentinel.TLSConfig = options.TLSConfig
	}
	return options, err
}

// split splits a URL into the scheme before "://", the part up to the path, and the rest.
func split(redisURL string) (scheme, authority, rest string) {
	scheme, rest, _ = strings.Cut(redisURL, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return scheme, rest[:i], rest[i:]
	}
	return scheme, rest, ""
}

// form converts a URL with a list of addresses, or with "-cluster" or "-sentinel" in the scheme (also
// with a "+"), to a URL that rueidis can parse. of is "cluster" or "sentinel", if given.
func form(redisURL string) (plain, of string) {
	scheme, authority, rest := split(redisURL)
	if !strings.Contains(redisURL, "://") {
		return redisURL, ""
	}
	if noPath, slash := strings.CutPrefix(rest, "/"); slash && (noPath == "" || strings.Contains("?#", noPath[:1])) {
		rest = noPath
	}
	if i := strings.IndexAny(scheme, "+-"); i > 0 && slices.Contains([]string{"cluster", "sentinel"}, scheme[i+1:]) {
		scheme, of = scheme[:i], scheme[i+1:]
	}
	user := strings.LastIndex(authority, "@") + 1
	hosts := strings.Split(authority[user:], ",")
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	join, port := "?", serverPort
	if strings.Contains(rest, "?") {
		join = "&"
	}
	if of == "sentinel" {
		port = sentinelPort
	}
	for i, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil && host != "" {
			hosts[i] = host + ":" + port
		}
		if i > 0 {
			rest += join + "addr=" + url.QueryEscape(hosts[i])
			join = "&"
		}
	}
	if hasFragment {
		rest += "#" + fragment
	}
	return scheme + "://" + authority[:user] + hosts[0] + rest, of
}

// checkOptions returns an error for options that would be ignored, or are not allowed.
func checkOptions(query url.Values, options *rueidis.ClientOption) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values, known := urlOptions[name]
		switch {
		case !known:
			return errors.New("unknown option " + printable.Quote(name))
		case name == "addr" &&
			slices.ContainsFunc(query[name], func(v string) bool { host, _, err := net.SplitHostPort(v); return err != nil || host == "" }):
			return errors.New("option addr can only be host:port") // rueidis would take the first host
		case name != "addr" && len(query[name]) > 1:
			return fmt.Errorf("option %s is given more than once", name)
		case values != nil && slices.ContainsFunc(query[name], func(v string) bool { return !slices.Contains(values, v) }):
			return fmt.Errorf("option %s can only be %s", name, strings.Join(values, " or "))
		case options.TLSConfig == nil && slices.Contains(tlsOptions, name):
			return fmt.Errorf("option %s is for rediss", name)
		case options.Sentinel.MasterSet == "" && slices.Contains(sentinelOptions, name):
			return fmt.Errorf("option %s is for Sentinels, which need master_set", name)
		}
	}
	return nil
}
