package redisio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// expected is a part of every error about a URL, unless that is about a file.
const expected = "redis URL cannot be used: redis[s]://[user[:password]@]host[:port][,host[:port]…][/database number][?option=value], " +
	"with special characters percent-encoded; " +
	"the scheme may end in -cluster or -sentinel; the options are addr, client_cache, client_name, db, dial_timeout, " +
	"master_set, max_retries, password_file, protocol, sentinel_password, sentinel_username, " +
	"skip_verify, tls_ca, tls_cert, tls_key, tls_server_name, write_timeout"

// A password is never in the error, nor in the addresses, which the error of a failed
// connection contains.
func FuzzPassword(f *testing.F) {
	for _, s := range [][5]string{
		{"redis", "user", "", "", "host:6379"}, {"redis", "", "12#", "", "host:1"}, {"redis", "user", "12/", "/x", "host"},
		{"redis", "user", "a@127.0.0.1:1?", "", "host"}, {"unix", "user", "12/", "", "/socket"}, {"http", "u", "", "", "h"},
		{"redis", "user", "%", "%zz", "host"}, {"redis", "user", "", "", "ho st:port"}, {"redis", "user", "a@", "/b?c#d", "[::1"},
		{"redis", "user", "", "", "host/1?addr=other:2&client_name=x"}, {"", "user", "", "", "host"}, {"redis", "u", "\\", "\x00", "host"},
		{"redis", "user", "1,", "/c", "host"}, {"redis-cluster", "user", ",", ":1", "host,h"}, {"rediss+sentinel", "u", "", "/x", "host?master_set=m"},
		{"redis", "u", "?addr=", ":1", "host"}, {"redis", "u", "?client_name=", "", "host"}, {"redis", "u", "1#", "", "host"},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], false)
		f.Add(s[0], s[1], s[2], s[3], s[4], true)
	}
	f.Add("redis-sentinel", "host?master_set=m&sentinel_username=u&sentinel_password=", "", "&x", "", true)
	f.Add("redis", "host/user", "", "", "h", true)
	f.Add("redis", "host?addr=", "", "", "h:1", true)
	const secret = "s3cret"
	f.Fuzz(func(t *testing.T, scheme, user, before, after, host string, encoded bool) {
		if rest := scheme + user + before + after + host + expected; strings.Contains(rest, "s3") || strings.Contains(rest, "cret") {
			return
		}
		url := scheme + "://" + user + ":" + before + secret + after + "@" + host
		if encoded { // too much of the URL was
			url = strings.ReplaceAll(url, "@", "%40")
		}
		options, err := redisio.Options(url)
		shown := fmt.Sprint(options.InitAddress)
		if err != nil {
			if shown = err.Error(); !strings.Contains(shown, "redis URL cannot be used: ") || !strings.Contains(shown, "redis[s]://") && !strings.Contains(shown, "option") {
				t.Errorf("%q: the error does not say what is expected: %v", url, err)
			}
		}
		if strings.Contains(shown, "s3") || strings.Contains(shown, "cret") {
			t.Errorf("%q: the password is shown: %s", url, shown)
		}
		if err == nil && !encoded && !strings.Contains(options.Password, secret) && !strings.Contains(options.Username, secret) {
			t.Errorf("%q: the password was lost: %+v", url, options)
		}
	})
}
