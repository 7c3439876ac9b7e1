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
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLS starts a redis-server that speaks TLS alone, with a certificate of a CA of its own, and
// asks its clients for one. It gives the server's host:port, and what a client needs.
func TLS(t testing.TB, args ...string) (addr string, client *tls.Config) {
	t.Helper()
	ca := issue(t, nil)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	dir, server := t.TempDir(), issue(t, &ca)
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args = append([]string{
		"--tls-ca-cert-file", file("ca", "CERTIFICATE", ca.Certificate[0]), "--tls-cert-file", file("cert", "CERTIFICATE", server.Certificate[0]),
		"--tls-key-file", file("key", "PRIVATE KEY", key), "--port", "0",
	}, args...)
	var proc *process
	port, err := onFreePort(func(port int) (err error) {
		proc, err = launch(port, dir, append(args, "--tls-port", strconv.Itoa(port)))
		return err
	})
	if err != nil {
		t.Fatalf("redistest: TLS: %v", err)
	}
	t.Cleanup(proc.kill)
	return net.JoinHostPort(host, strconv.Itoa(port)), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{issue(t, &ca)}}
}

// issue makes a certificate for the host of the tests; of a CA if there is none to sign it.
func issue(t testing.TB, ca *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "redistest CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(host)},
		IsCA: ca == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
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
