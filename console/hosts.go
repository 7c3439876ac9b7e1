package console

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// WithHosts names the hosts under which the console is served, without ports. A request for another
// host gets 421 (Misdirected Request): a page of another site could have its own name point to this
// server, and read the console (DNS rebinding). localhost, names below it, and IP addresses need not
// be named; without WithHosts only these are served.
func WithHosts(hosts ...string) Option {
	return func(c *console) {
		for _, host := range hosts {
			c.hosts = append(c.hosts, plainHost(host))
		}
	}
}

// plainHost is a host as it is compared: without port, brackets, case and the dot at the end.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// serves reports whether a request for the host is answered.
func (c *console) serves(host string) bool {
	host = plainHost(host)
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(c.hosts, host)
}

// forHosts refuses requests for other hosts.
func (c *console) forHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.serves(r.Host) {
			http.Error(w, "this console is not served under this host name; console.WithHosts names those it is served under", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
