package console

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// WithHosts names the hosts under which the console is served, without ports. A request for another host gets 421
// (Misdirected Request): otherwise another site could make its own name resolve to this server, and its page could read
// the console (DNS rebinding). localhost, its subdomains and IP addresses are always served; without WithHosts, only
// they are served.
func WithHosts(hosts ...string) Option {
	return func(c *console) {
		for _, host := range hosts {
			c.hosts = append(c.hosts, plainHost(host))
		}
	}
}

// plainHost returns a host for comparison: in lower case, without port, brackets and the dot at the end.
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
			http.Error(w, "this console is not served under this host name; use console.WithHosts to add it", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
