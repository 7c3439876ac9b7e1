package topology_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// dead is the address of no server.
const dead = "127.0.0.1:1"

// withoutScheme is the part of a URL after its scheme.
func withoutScheme(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return rest
}

// tlsCluster starts a cluster of one server, which announces its IP address; its certificate has only a name.
func tlsCluster(t *testing.T, a *redistest.Authority) (port string) {
	t.Helper()
	addr := a.Start(t, []string{"localhost"}, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	config := a.Client.Clone()
	config.ServerName = "localhost"
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: config, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	locktest.OK(t, c.Do(t.Context(), c.B().Arbitrary("CLUSTER", "ADDSLOTSRANGE", "0", "16383").Build()).Error())
	redistest.Eventually(t, "the cluster to be up", func() bool {
		info, err := c.Do(t.Context(), c.B().Arbitrary("CLUSTER", "INFO").Build()).ToString()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	_, port, _ = strings.Cut(addr, ":")
	return port
}

// A URL has all settings, in the forms that other clients use.
func TestURLs_AreAccepted(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	seeds := servers[0].Addr() + "," + servers[1].Addr()
	master := redistest.Start(t, "--requirepass", "s3rver")
	guarded := "sentinel auth-pass master s3rver\nuser default off\nuser watcher on >p@ss " + redisio.SentinelRules + "\nuser root on >pw +@all &*"
	sentinel, _, _ := strings.Cut(withoutScheme(redistest.Sentinel(t, master, guarded)), "?")
	a := redistest.NewAuthority(t)
	files := url.Values{"tls_ca": {a.CA}, "tls_cert": {a.Cert}, "tls_key": {a.Key}}.Encode()
	secure, cluster := a.Start(t, nil), tlsCluster(t, a)
	own := a.Sentinel(t, secure, []string{"localhost"})
	plain, _, _ := strings.Cut(withoutScheme(redistest.Sentinel(t, redistest.Start(t))), "?")
	password := filepath.Join(t.TempDir(), "password")
	locktest.OK(t, os.WriteFile(password, []byte("s3rver\n"), 0o600))
	watcher := lockkeeper.WithClientOption(func(o *rueidis.ClientOption) {
		o.Sentinel.TLSConfig, o.Sentinel.Username, o.Sentinel.Password = nil, "watcher", "p@ss"
	})
	for _, c := range []struct {
		url     string
		options []lockkeeper.OpenOption
		mode    rueidis.ClientMode
	}{
		{"redis://" + seeds, nil, rueidis.ClientModeCluster},
		{"redis://" + dead + "," + seeds + "?client_name=x", nil, rueidis.ClientModeCluster},
		{"redis-cluster://" + servers[1].Addr(), nil, rueidis.ClientModeCluster},
		{"redis+cluster://" + seeds + "," + dead, nil, rueidis.ClientModeCluster},
		{"rediss-cluster://localhost:" + cluster + "/?" + files, nil, rueidis.ClientModeCluster},
		{"rediss://localhost:" + cluster + "," + dead + "?" + files, nil, rueidis.ClientModeCluster},
		{"rediss://" + secure + "/3?" + files, nil, rueidis.ClientModeStandalone},
		{"rediss://" + secure + "?tls_server_name=127.0.0.1&" + files, nil, rueidis.ClientModeStandalone},
		{"redis-sentinel://" + dead + "," + plain + "/2?master_set=master", nil, rueidis.ClientModeSentinel},
		{"rediss-sentinel://" + dead + ",localhost:" + own + "?master_set=master&" + files, nil, rueidis.ClientModeSentinel},
		{"redis://localhost:" + own + "?master_set=master", []lockkeeper.OpenOption{lockkeeper.WithTLS(a.Client)}, rueidis.ClientModeSentinel},
		{"redis://:s3rver@" + sentinel + "?master_set=master&sentinel_username=watcher&sentinel_password=p%40ss", nil, rueidis.ClientModeSentinel},
		{
			"redis://" + sentinel + "?master_set=master&sentinel_username=watcher&sentinel_password=p%40ss&" + url.Values{"password_file": {password}}.Encode(),
			nil, rueidis.ClientModeSentinel,
		},
		{"redis://:s3rver@" + sentinel + "?master_set=master", []lockkeeper.OpenOption{watcher}, rueidis.ClientModeSentinel},
	} {
		var s *lockkeeper.System
		err := untilAnswered(t, func() (err error) {
			s, err = lockkeeper.Open(locktest.Within(t), c.url, c.options...)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		for range 3 {
			locktest.ExpectGranted(t, s.Lock(redistest.Name(t)))
		}
		locktest.Stop(t, s)
		if c.options == nil {
			var client rueidis.Client
			err := untilAnswered(t, func() (err error) {
				client, err = lockkeeper.Connect(c.url)
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", c.url, err)
				continue
			}
			if client.Mode() != c.mode {
				t.Errorf("%s: a client for %s", c.url, client.Mode())
			}
			client.Close()
		}
	}
	root, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{sentinel}, Username: "root", Password: "pw", ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	log, err := root.Do(t.Context(), root.B().Arbitrary("ACL", "LOG").Build()).ToArray()
	for _, entry := range log {
		// A client sends its name to servers from 7.2 on; earlier ones have no right for that.
		refused, err := entry.AsMap()
		object := refused["object"]
		if what, _ := object.ToString(); err != nil || what != "client|setinfo" {
			t.Errorf("the Sentinel has refused %q (%v)", what, err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// An incomplete URL or server is refused at once, with a remedy: a client that would reach only some of the locks is
// refused, too.
func TestURLs_ReportWhatIsMissing(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	for name, lacks := range map[string]string{"blind": "-cluster|slots -cluster|shards", "stiff": "-asking", "unsure": "-pubsub|shardnumsub"} {
		for _, s := range servers {
			s.Do(t, strings.Fields("ACL SETUSER "+name+" on >pw ~* &* +@all "+lacks)...)
		}
	}
	server, seed := redistest.Shared(t), servers[0].Addr()
	sentinel, _, _ := strings.Cut(withoutScheme(redistest.Sentinel(t, redistest.Start(t))), "?")
	guarded, _, _ := strings.Cut(withoutScheme(redistest.Sentinel(t, redistest.Start(t), "requirepass pw")), "?")
	secure, _ := redistest.TLS(t)
	later := func(url string) (func(), error) {
		c, err := lockkeeper.ConnectLater(url)
		if err != nil {
			return nil, err
		}
		return c.Close, nil
	}
	open := func(url string) (func(), error) {
		s, err := lockkeeper.Open(locktest.Within(t), url)
		return func() { locktest.Stop(t, s) }, err
	}
	for _, c := range []struct {
		open  func(url string) (func(), error)
		url   string
		want  error
		words string
	}{
		// cluster|slots or cluster|shards: which one the client asks depends on the server's version.
		{open, "redis://blind:pw@" + seed, lockkeeper.ErrRejected, "+cluster|s"},
		{open, "redis-cluster://blind:pw@" + seed, lockkeeper.ErrRejected, "+cluster|s"},
		{open, "redis://stiff:pw@" + seed, lockkeeper.ErrRejected, "+asking"},
		{open, "redis://unsure:pw@" + seed, lockkeeper.ErrRejected, "+pubsub|shardnumsub"},
		{later, servers[1].URL(), lockkeeper.ErrInvalid, "cluster"},
		{open, "redis-cluster://" + server.Addr(), lockkeeper.ErrRejected, "not one of a cluster"},
		{open, "redis://" + server.Addr() + "," + server.Addr(), lockkeeper.ErrRejected, "not one of a cluster"},
		{open, "redis://" + sentinel, lockkeeper.ErrInvalid, "master_set"},
		{open, "redis://" + dead + "," + sentinel, lockkeeper.ErrRejected, "master_set"},
		{open, "redis-sentinel://" + sentinel, lockkeeper.ErrInvalid, "master_set"},
		{open, "redis-sentinel://" + sentinel + "?master_set=other", lockkeeper.ErrRejected, "check master_set"},
		{open, server.URL() + "?master_set=master", lockkeeper.ErrRejected, "remove master_set"},
		{open, "redis://" + guarded + "?master_set=master", lockkeeper.ErrRejected, "NOAUTH"},
		{open, "redis-cluster://" + seed + "?master_set=master", lockkeeper.ErrInvalid, "for Sentinels"},
		{open, "redis://" + seed + "?sentinel_username=x", lockkeeper.ErrInvalid, "need master_set"},
		{open, "redis://" + seed + "?tls_ca=ca.pem", lockkeeper.ErrInvalid, "for rediss"},
		{open, "rediss://" + secure + "?tls_ca=/nowhere", lockkeeper.ErrInvalid, "tls_ca"},
		{open, "rediss://" + secure + "?tls_ca=urls_test.go", lockkeeper.ErrInvalid, "PEM"},
		{open, "rediss://" + secure + "?tls_cert=urls_test.go", lockkeeper.ErrInvalid, "tls_key"},
		{open, "rediss-sentinel://" + secure + "?master_set=master", lockkeeper.ErrRejected, "x509"},
	} {
		err := untilAnswered(t, func() (err error) {
			locktest.InTime(t, c.url, func() {
				var end func()
				if end, err = c.open(c.url); err == nil {
					end()
				}
			})
			return err
		})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: error %v, want %v with %q", c.url, err, c.want, c.words)
		}
	}
}

// untilAnswered opens something, again if a server has not answered: a busy machine may be too slow.
func untilAnswered(t *testing.T, open func() error) (err error) {
	t.Helper()
	redistest.Eventually(t, "an answer", func() bool {
		err = open()
		why := (*redisio.Error)(nil)
		return !errors.As(err, &why) || !why.Transient
	})
	return err
}

// The caller's own client for a single server of a cluster gets an error when the first lock is out of reach, instead
// of waiting for ever.
func TestCluster_SingleClientIsRefused(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	name, _ := firstHalf(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{servers[1].Addr()}, ForceSingleClient: true, DisableCache: true})
	s := locktest.OpenWith(t, client, err, lockkeeper.Config{})
	locktest.InTime(t, "to be refused", func() {
		_, err := s.Lock(name).Acquire(locktest.Within(t))
		locktest.IsError(t, err, lockkeeper.ErrRejected, "+cluster|slots")
	})
}

// A silent Sentinel delays nothing, since a client subscribes to all of them.
func TestSentinel_SilentOneDelaysNothing(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	sentinel, _, _ := strings.Cut(withoutScheme(redistest.Sentinel(t, master)), "?")
	silent, other := redistest.NewProxy(t, sentinel), redistest.NewProxy(t, sentinel)
	silent.Freeze(true)
	client := locktest.Must(lockkeeper.Connect("redis-sentinel://" + silent.Addr() + "," + other.Addr() + "?master_set=master"))(t)
	t.Cleanup(client.Close)
	master.Kill(t)
	replica.AwaitMaster(t)
	redistest.Eventually(t, "the client to move", func() bool {
		return client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error() == nil
	})
}
