package redisio_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The error about a file names it, and not all that a URL may contain.
func TestConnect_ErrorsAboutFilesAreShort(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://u@host?password_file=/no/file":                                 "option password_file: open /no/file: no such file or directory",
		"redis://u@host?password_file=/dev/null":                                "option password_file: /dev/null is empty",
		"rediss://u:s3cret@host?tls_ca=/no/file":                                "option tls_ca: open /no/file: no such file or directory",
		"rediss-sentinel://host?master_set=m&sentinel_password=p&tls_ca=/no/ca": "option tls_ca: open /no/ca: no such file or directory",
		"rediss://host?tls_cert=/no/cert":                                       "options tls_cert and tls_key: open /no/cert: no such file or directory",
	} {
		if _, err := redisio.Connect(url); err == nil || err.Error() != "redis URL cannot be used: "+want {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// The error names the cause, but does not quote what may be a password; see FuzzPassword.
func TestConnect_ErrorsNameTheCause(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                            "invalid URL scheme",
		"http://host:6379":            "invalid URL scheme: http",
		"redis://host:port":           "invalid port",
		"redis://host?dial_timeout=1": "invalid dial timeout",
		"redis://user:p@host:port":    "redis[s]://[user",
		"redis://host?retries=3":      `unknown option "retries"`,
		"redis://:p@host?retries=3": "the options are addr, client_cache, client_name, db, dial_timeout, " +
			"master_set, max_retries, password_file, protocol, " +
			"sentinel_password, sentinel_username, skip_verify, tls_ca, tls_cert, tls_key, tls_server_name, write_timeout",
		"redis://host?max_retries=3":                 "max_retries can only be 0",
		"redis://host?password_file=":                "option password_file: it names no file",
		"redis://u:s3cret@host?password_file=/a":     "option password_file: the URL has a password, in addition to the file /a",
		"redis://u@host?password_file=/no/file":      "option password_file: open /no/file: no such file",
		"redis://u@host?password_file=/dev":          "option password_file: read /dev: is a directory",
		"redis://u%40d@host?password_file=/dev/null": "option password_file: /dev/null is empty",
		"redis://u:12?password_file=s3cret@host":     "not shown",
		"redis://u:12?password_file=s3cret%40host":   "not shown",
		"redis://host?password_file=/no/file":        "option password_file: open /no/file",
		"redis://host?password_file=/dev/null":       "/dev/null is empty",
		"redis://host?addr=other":                    "addr can only be host:port",
		"redis://host?protocol=4":                    "protocol can only be 2 or 3",
		"redis://host?skip_verify=true":              "skip_verify is for rediss",
		"redis:127.0.0.1:1":                          "no // behind the scheme",
		"redis:":                                     "no // behind the scheme",
		"rediss:/127.0.0.1/2":                        "path",
		"redis:/3":                                   "no // behind the scheme",
		"redis://":                                   "names no server",
		"redis:///1":                                 "names no server",
		"redis://:6379":                              "names no server",
		"redis://,127.0.0.1:1":                       "names no server",
		"redis://?addr=127.0.0.1:1":                  "names no server",
		"redis-cluster:///":                          "names no server",
		"rediss-sentinel://?master_set=m":            "names no server",
		"redis://host?a\u2800b=1":                    `unknown option "a\u2800b"`,
		"redis://host:\u2800":                        `\u2800`,
		"redis://127.0.0.1:1/1?db=2":                 "the path names another database",
		"redis://127.0.0.1:1/0?db=2":                 "the path names another database",
		"redis://127.0.0.1:1?db=1&db=2":              "option db is given more than once",
		"redis://127.0.0.1:1/2?db=2":                 "cannot connect to Redis at [127.0.0.1:1]",
		"redis://host?db=%zz":                        "invalid URL escape",
		"redis://127.0.0.1:1":                        "cannot connect to Redis at [127.0.0.1:1]",
		"redis://127.0.0.1:1?addr=127.0.0.1:2":       "127.0.0.1:2",
		"redis://127.0.0.1:1,[::1]:2,127.0.0.2:3/?client_name=x&addr=127.0.0.1:4": "[127.0.0.1:1 127.0.0.1:4 [::1]:2 127.0.0.2:3]",
		"redis-cluster://127.0.0.9":                                 "[127.0.0.9:6379]",
		"redis-sentinel://[::1],127.0.0.9,:1?master_set=m":          "addr can only be",
		"redis-sentinel://[::1],127.0.0.9,127.0.0.9:1?master_set=m": "[[::1]:26379 127.0.0.9:26379 127.0.0.9:1]",
		"redis://user:s3cret@127.0.0.1:1":                           "cannot connect",
		"redis://user:p@host:6379?max_retries=s3cret":               "not shown",
	} {
		client, err := redisio.Connect(url)
		switch {
		case err == nil:
			client.Close()
			t.Errorf("%q: no error", url)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: %q is not in: %v", url, want, err)
		case url != "" && strings.Contains(err.Error(), url), strings.ContainsAny(err.Error(), "\u2800"), strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%q: quoted in: %v", url, err)
		}
	}
}

// An error of the first connection has a hint about TLS or proxies.
func TestConnect_HintsAtTLSAndProxies(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	encrypted, plain := authority.Start(t, nil), redistest.Start(t)
	p := redistest.NewProxy(t, plain.Addr())
	p.DropRepliesTo(redistest.Command("HELLO"), 0)
	const ca, closed = "?tls_ca=", "closed at the first command, HELLO"
	for url, want := range map[string]string{
		"rediss://" + plain.Addr() + "?write_timeout=500ms": "this client speaks TLS: does the server",
		"redis://" + encrypted:                              "needs a URL that begins with rediss://",
		"redis-sentinel://" + encrypted + "?master_set=m":   "needs a URL that begins with rediss://",
		"rediss://" + encrypted:                             "(TLS: check tls_ca",
		"rediss://" + encrypted + ca + authority.CA:         "(TLS: check tls_ca",
		p.URL():                       closed,
		p.URL() + "?protocol=2":       closed,
		"redis-cluster://" + p.Addr(): closed,
		"redis-sentinel://" + p.Addr() + "?master_set=m": closed,
	} {
		if !strings.Contains(url, "timeout") { // a busy machine may be slow, which would be another error
			url += map[bool]string{false: "?", true: "&"}[strings.Contains(url, "?")] + "dial_timeout=1m&write_timeout=1m"
		}
		client, err := redisio.Connect(url)
		if err == nil {
			client.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q is not in: %v", url, want, err)
		}
	}
}

// A server that refuses the client is an error, also for ConnectLater.
func TestConnect_RefusalIsAnError(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "s3cret")
	for _, test := range []struct {
		connect func(string) (rueidis.Client, error)
		url     string
		words   string
		want    redisio.Error
	}{
		{redisio.Connect, "redis://:s3wrong@" + locked.Addr(), "WRONGPASS", redistest.Hinted("check the user")},
		{redisio.Connect, locked.URL(), "NOAUTH", redistest.Hinted("user name and password")},
		{redisio.Connect, "redis://127.0.0.1:1", "connection refused", redistest.Passing},
		{redisio.ConnectLater, "redis://:s3wrong@" + locked.Addr(), "WRONGPASS", redistest.Hinted("check the user")},
		{redisio.ConnectLater, "redis://host?retries=1", "unknown option", redistest.Lasting},
		{redisio.ConnectLater, "redis://host?master_set=m", "single server", redistest.Lasting},
		{redisio.ConnectLater, "redis://host:1?addr=other:1", "single server", redistest.Lasting},
	} {
		client, err := test.connect(test.url)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", test.url)
			continue
		}
		var classified *redisio.Error
		if errors.As(err, &classified) {
			redistest.ExpectError(t, test.url, classified, test.want)
		}
		if text := err.Error(); !strings.Contains(text, test.words) || strings.Contains(text, "s3") {
			t.Errorf("%s: %v", test.url, err)
		}
	}
}

// Of several addresses, one must answer, possibly at a second attempt.
func TestConnect_AsksAgain(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	var dials atomic.Int32
	client, err := redisio.ConnectWith(t.Context(), rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:1", servers[0].Addr()},
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if address == servers[0].Addr() && dials.Add(1) == 1 {
				address = "127.0.0.1:1"
			}
			return d.DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
}

func TestConnect_TakesTheOptionsOfTheURL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "p@ss/word")
	for _, connect := range []func(string) (rueidis.Client, error){redisio.Connect, redisio.ConnectLater} {
		client, err := connect("redis://:p%40ss%2Fword@" + s.Addr() + "/3?client_name=orders")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		if err := client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error(); err != nil {
			t.Error(err)
		}
		clients, _ := s.Do(t, "CLIENT", "LIST").ToString()
		if _, line, _ := strings.Cut(clients, " name=orders "); !strings.Contains(line, " db=3 ") {
			t.Errorf("no client of that name in database 3:\n%s", clients)
		}
	}
	if calls := s.Calls(t); calls["client|tracking"] != 0 {
		t.Error("the client-side cache is on")
	}
}
