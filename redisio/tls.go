package redisio

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

// readTLS reads the files that a URL names. Without tls_server_name, the certificate of a server must
// be for the host in its address; see dialTLS.
func readTLS(query url.Values, config *tls.Config) error {
	config.ServerName = query.Get("tls_server_name")
	if file := query.Get("tls_ca"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("option tls_ca: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return errors.New("option tls_ca: the file has no certificate in PEM")
		}
	}
	cert, key := query.Get("tls_cert"), query.Get("tls_key")
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("options tls_cert and tls_key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return nil
}

// dialTLS verifies that the server's certificate is for the host in its address. Clusters and
// Sentinels often name servers by their IP addresses, which the certificates do not contain: then
// the host in one of the configured addresses is accepted.
func dialTLS(ctx context.Context, address string, d *net.Dialer, config *tls.Config, named []string) (net.Conn, error) {
	dial := func(config *tls.Config) (net.Conn, error) {
		return (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", address)
	}
	conn, err := dial(config)
	if config.ServerName != "" || !errors.As(err, new(x509.HostnameError)) {
		return conn, err
	}
	own, _, _ := net.SplitHostPort(address)
	for _, other := range named {
		if host, _, _ := net.SplitHostPort(other); host != own && host != "" {
			as := config.Clone()
			as.ServerName = host
			if conn, failed := dial(as); failed == nil {
				return conn, nil
			}
		}
	}
	return nil, err
}

// untrusted reports whether one side of a TLS connection does not accept the certificate of the
// other, which is a permanent error.
func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		remote       *net.OpError
	)
	return errors.As(err, &verification) ||
		errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Error(), "certificate")
}

// refusal returns why the server has refused the client's certificate, or err if the server has not refused it. In TLS
// 1.3 the server refuses after the handshake, and its error is lost if the client writes first; so refusal connects
// again and only reads.
func (o *opening) refusal(options rueidis.ClientOption, err error) error {
	config := options.TLSConfig
	if options.Sentinel.MasterSet != "" {
		config = options.Sentinel.TLSConfig
	}
	if config == nil || untrusted(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(o.ctx, helloTimeout)
	defer cancel()
	for _, address := range options.InitAddress {
		conn, failed := o.dial(ctx, address, &net.Dialer{}, config)
		if failed != nil {
			continue
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		if _, failed = conn.Read(make([]byte, 1)); untrusted(failed) {
			return failed
		}
		return err
	}
	return err
}
