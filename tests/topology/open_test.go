package topology_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Open works with every kind of Redis server, and Close leaves nothing behind.
func TestOpen_WorksWithEveryServer(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t)
	locked.Do(t, "ACL", "SETUSER", "locker", "on", ">p@ss/word", "+@all", "~*", "&*")
	locked.Do(t, "ACL", "SETUSER", "default", "off")
	server := redistest.Shared(t)
	secure, config := redistest.TLS(t)
	actors := quiet.ActorSystem()
	t.Cleanup(actors.Shutdown)
	for name, open := range map[string]func(ctx context.Context) (*lockkeeper.System, error){
		"by URL": func(ctx context.Context) (*lockkeeper.System, error) { return lockkeeper.Open(ctx, server.URL()) },
		"with actors": func(ctx context.Context) (*lockkeeper.System, error) {
			s, err := lockkeeper.Open(ctx, server.URL(), lockkeeper.WithActorSystem(actors))
			if lockkeeper.From(actors) != s {
				t.Error("the System is not in the given actor system")
			}
			return s, err
		},
		"as a user": func(ctx context.Context) (*lockkeeper.System, error) {
			return lockkeeper.Open(ctx, locked.URL(), lockkeeper.WithUser("locker", "p@ss/word"))
		},
		"by TLS": func(ctx context.Context) (*lockkeeper.System, error) {
			return lockkeeper.Open(ctx, "redis://"+secure, lockkeeper.WithTLS(config))
		},
		"by options": func(ctx context.Context) (*lockkeeper.System, error) {
			return lockkeeper.Open(ctx, "", lockkeeper.WithClientOption(func(o *rueidis.ClientOption) { o.InitAddress = []string{server.Addr()} }))
		},
		"Sentinel": func(ctx context.Context) (*lockkeeper.System, error) {
			return lockkeeper.Open(ctx, redistest.Sentinel(t, server))
		},
		"cluster": func(ctx context.Context) (*lockkeeper.System, error) {
			return lockkeeper.Open(ctx, redistest.Cluster(t, 1)[0].URL())
		},
	} {
		ctx, cancel := context.WithCancel(locktest.Within(t))
		s, err := open(ctx)
		cancel() // it applies to connecting only
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		locktest.ExpectGranted(t, s.Lock(redistest.Name(t)))
		locktest.Stop(t, s)
		locktest.Stop(t, s)
		locktest.ExpectRefused(t, lockkeeper.ErrClosed, s.Lock(redistest.Name(t)))
	}
	if actors.IsStopped() {
		t.Error("the caller's actor system was shut down")
	}
}

// A cluster's servers cannot draw a token of one counter in the script that takes the lock. Its processes do not ask
// each other for locks that linger.
func TestConfig_IsRefusedInACluster(t *testing.T) {
	t.Parallel()
	url := redistest.Cluster(t, 1)[0].URL()
	for _, cfg := range []lockkeeper.Config{{OneTokenCounter: true}, {Linger: time.Second}} {
		if _, err := lockkeeper.Open(locktest.Within(t), url, lockkeeper.WithConfig(cfg)); !errors.Is(err, lockkeeper.ErrInvalid) {
			t.Errorf("with %+v it is opened with %v", cfg, err)
		}
	}
}

// The connections have the requested database and name, and end with the System.
func TestOpen_ClosesItsClient(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	const name = "orders-of-TestOpen_ClosesItsClient"
	clients := func() string {
		list, err := server.Do(t, "CLIENT", "LIST").ToString()
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	s, err := lockkeeper.Open(locktest.Within(t), server.URL(), lockkeeper.WithClientOption(func(o *rueidis.ClientOption) { o.SelectDB, o.ClientName = 3, name }),
		lockkeeper.WithConfig(lockkeeper.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}))
	if err != nil {
		t.Fatal(err)
	}
	if _, line, _ := strings.Cut(clients(), " name="+name+" "); !strings.Contains(line, " db=3 ") {
		t.Errorf("no client of that name in database 3:\n%s", clients())
	}
	if logged, err := os.ReadFile(log.Name()); !strings.Contains(string(logged), "actor system started") {
		t.Errorf("the logger was not given what the actor system logs: %s, %v", logged, err)
	}
	locktest.Stop(t, s)
	redistest.Eventually(t, "the connections to be closed", func() bool { return !strings.Contains(clients(), name) })
}

// Open returns an error at once for what cannot work, with a remedy.
func TestOpen_ReportsErrorsAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	secure, config := redistest.TLS(t)
	sentinel, _, _ := strings.Cut(redistest.Sentinel(t, redistest.Start(t)), "?")
	otherCA, noCertificate := config.Clone(), config.Clone()
	otherCA.RootCAs, noCertificate.Certificates = nil, nil
	single := lockkeeper.WithClientOption(func(o *rueidis.ClientOption) { o.InitAddress, o.ForceSingleClient = []string{"127.0.0.1:1"}, true })
	for name, c := range map[string]struct {
		url     string
		options []lockkeeper.OpenOption
		want    error
		words   string
	}{
		"Sentinel without its master":   {sentinel, nil, lockkeeper.ErrInvalid, "master_set"},
		"unknown CA":                    {"rediss://" + secure, nil, lockkeeper.ErrRejected, "x509: certificate signed by unknown authority"},
		"another CA":                    {"rediss://" + secure, []lockkeeper.OpenOption{lockkeeper.WithTLS(otherCA)}, lockkeeper.ErrRejected, "RootCAs"},
		"no client certificate":         {"rediss://" + secure, []lockkeeper.OpenOption{lockkeeper.WithTLS(noCertificate)}, lockkeeper.ErrRejected, "certificate required"},
		"wrong password":                {server.URL(), []lockkeeper.OpenOption{lockkeeper.WithUser("absent", "s3cret")}, lockkeeper.ErrRejected, "WRONGPASS"},
		"no server for a single client": {"", []lockkeeper.OpenOption{single}, lockkeeper.ErrUnavailable, "refused"},
		"options without an address":    {"", []lockkeeper.OpenOption{lockkeeper.WithClientOption(func(*rueidis.ClientOption) {})}, lockkeeper.ErrInvalid, "no address"},
		"no function":                   {server.URL(), []lockkeeper.OpenOption{lockkeeper.WithClientOption(nil)}, lockkeeper.ErrInvalid, "WithClientOption is nil"},
		"no TLS configuration":          {server.URL(), []lockkeeper.OpenOption{lockkeeper.WithTLS(nil)}, lockkeeper.ErrInvalid, "WithTLS is nil"},
		"no actor system":               {server.URL(), []lockkeeper.OpenOption{lockkeeper.WithActorSystem(nil)}, lockkeeper.ErrInvalid, "actor system is nil"},
		"hidden option":                 {server.URL() + "?a\u2800b=1", nil, lockkeeper.ErrInvalid, `"a\u2800b"`},
		"hidden application": {
			server.URL(),
			[]lockkeeper.OpenOption{
				lockkeeper.WithConfig(lockkeeper.Config{Application: strings.Repeat("\u2800", 100)}),
			},
			lockkeeper.ErrInvalid, `\u2800\u2800`,
		},
		"hidden key prefix": {
			server.URL(), []lockkeeper.OpenOption{lockkeeper.WithConfig(lockkeeper.Config{KeyPrefix: "a\u2800\xff"})},
			lockkeeper.ErrInvalid, `a\u2800\xff`,
		},
		"no server":    {"redis:///1", nil, lockkeeper.ErrInvalid, "names no server"},
		"wrong Config": {server.URL(), []lockkeeper.OpenOption{lockkeeper.WithConfig(lockkeeper.Config{Poll: 1})}, lockkeeper.ErrInvalid, "Poll"},
	} {
		open := func() (err error) {
			locktest.InTime(t, name, func() {
				var s *lockkeeper.System
				if s, err = lockkeeper.Open(locktest.Within(t), c.url, c.options...); err == nil {
					locktest.Stop(t, s)
				}
			})
			return err
		}
		var err error
		if c.want == lockkeeper.ErrUnavailable {
			err = open()
		} else {
			err = untilAnswered(t, open)
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) ||
			strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\u2800") {
			t.Errorf("%s: error %v, want %v with %q", name, err, c.want, c.words)
		}
	}
}

// A server that accepts connections and does not answer delays Open until its context ends.
func TestOpen_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, options := range [][]lockkeeper.OpenOption{nil, {lockkeeper.WithTLS(&tls.Config{})}} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		err := locktest.Limited(t, "the end of Open", func() error {
			_, err := lockkeeper.Open(ctx, "redis://"+silent.Addr().String()+"?dial_timeout=1m&write_timeout=1m", options...)
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lockkeeper.ErrUnavailable) {
			t.Error(err)
		}
	}
}

// When Redis does not answer, Close ends with its context, and everything that Open has made ends by itself; goleak
// checks that.
func TestOpen_CloseWithoutRedisEndsWithItsContext(t *testing.T) {
	server := redistest.Start(t)
	s, err := lockkeeper.Open(locktest.Within(t), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	locktest.Acquire(t, s.Lock("held"))
	server.Pause(t)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	locktest.InTime(t, "Close", func() {
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
	})
}
