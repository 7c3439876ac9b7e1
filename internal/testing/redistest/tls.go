//go:build unix

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest/rig"
)

// Authority is a CA for tests, with what servers and clients need.
type Authority struct {
	ca  tls.Certificate
	dir string
	// Client trusts the CA, and has a certificate from it. CA, Cert and Key are the same as files.
	Client        *tls.Config
	CA, Cert, Key string
}

// NewAuthority makes a CA.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{ca: issue(t, nil), dir: t.TempDir()}
	roots := x509.NewCertPool()
	roots.AddCert(a.ca.Leaf)
	a.CA = a.file(t, "ca", "CERTIFICATE", a.ca.Certificate[0])
	client := issue(t, &a.ca)
	a.Client = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}}
	a.Cert, a.Key = a.files(t, "client", client)
	return a
}

func (a *Authority) file(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (a *Authority) files(t testing.TB, name string, c tls.Certificate) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return a.file(t, name+" cert", "CERTIFICATE", c.Certificate[0]), a.file(t, name+" key", "PRIVATE KEY", der)
}

// options configure a redis-server or a Sentinel with a certificate for the names, to speak only
// TLS and to require certificates of its clients.
func (a *Authority) options(t testing.TB, names ...string) [][2]string {
	t.Helper()
	cert, key := a.files(t, "server "+strings.Join(names, " "), issue(t, &a.ca, names...))
	return [][2]string{
		{"tls-ca-cert-file", a.CA}, {"tls-cert-file", cert}, {"tls-key-file", key},
		{"tls-replication", "yes"}, {"tls-cluster", "yes"},
	}
}

// Start starts a redis-server that speaks only TLS, with a certificate for the names, by default
// its IP address. It returns host:port.
func (a *Authority) Start(t testing.TB, names []string, args ...string) (addr string) {
	t.Helper()
	args = append([]string{"--port", "0"}, args...)
	for _, option := range a.options(t, names...) {
		args = append(args, "--"+option[0], option[1])
	}
	s, err := rig.Start(rig.Options{Args: args, PortOption: "tls-port"})
	check(t, err)
	return keep(t, s).Addr()
}

// Sentinel is [Sentinel] with TLS, a certificate for the names, and further lines of its
// configuration. It returns the Sentinel's port; its master is named "master".
func (a *Authority) Sentinel(t testing.TB, master string, names []string, lines ...string) (port string) {
	t.Helper()
	for _, option := range a.options(t, names...) {
		lines = append(lines, fmt.Sprintf("%s %q", option[0], option[1]))
	}
	return startSentinel(t, master, rig.Options{PortOption: "tls-port"}, append(lines, "port 0")...).Port()
}

// TLS starts a redis-server that speaks only TLS, with a certificate of a new CA, and requires
// one of its clients. It returns the server's host:port and the configuration of a client.
func TLS(t testing.TB, args ...string) (addr string, client *tls.Config) {
	t.Helper()
	a := NewAuthority(t)
	return a.Start(t, nil, args...), a.Client
}

// issue makes a certificate for DNS names, or for the tests' host if there are none; without a
// ca it makes a CA certificate.
func issue(t testing.TB, ca *tls.Certificate, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "redistest CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: names,
		IsCA: ca == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.ParseIP(host)}
	}
	parent, signer := template, any(key)
	if ca != nil {
		template.Subject.CommonName, template.KeyUsage = "redistest", x509.KeyUsageDigitalSignature
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
