package red_test

import (
	"errors"
	"testing"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A RedLock starts with its majority: a server that is away then joins when it comes.
func TestRedLockStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	servers := threeServers(t)
	servers[2].Kill(t)
	if client, err := lockkeeper.Connect(servers[2].URL()); err == nil {
		client.Close()
		t.Error("Connect has reached a server that is away")
	} else if !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("connect: %v", err)
	}
	var systems []*lockkeeper.System
	for _, server := range servers {
		client, err := lockkeeper.ConnectLater(server.URL())
		s := locktest.OpenWith(t, client, err, redConfig)
		s.Lame = true // one is killed, and does not confirm the release
		systems = append(systems, s.System)
	}
	red, err := lockkeeper.RedLock(systems...)
	if err != nil {
		t.Fatal(err)
	}
	name := redistest.Name(t)
	hold := locktest.Acquire(t, red.Lock(name))
	_, err = systems[2].Lock(name + "alone").TryAcquire(locktest.Within(t))
	locktest.IsError(t, err, lockkeeper.ErrUnavailable)

	servers[2].Restart(t)
	late := locktest.Key{Server: servers[2], LockName: name, Name: name}
	redistest.Eventually(t, "the hold to be known to the server that came late", func() bool { return late.Exists(t) })
	servers[0].Kill(t) // the others are a majority now
	until := late.Expiry(t).Add(redConfig.Watchdog)
	redistest.Eventually(t, "the lease to be renewed", func() bool { return late.Expiry(t).After(until) })
	if !hold.Valid() {
		t.Errorf("lost: %v", hold.Err())
	}
	locktest.Release(t, hold)
	late.AwaitFree(t)
}

// A wrong URL, and a server that turns the client away, do not get better later.
func TestConnectLaterRefuses(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "secret")
	for url, want := range map[string]error{
		locked.URL():                      lockkeeper.ErrRejected,
		"redis://127.0.0.1:1?sentinel=no": lockkeeper.ErrInvalid,
	} {
		client, err := lockkeeper.ConnectLater(url)
		if err == nil {
			client.Close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
	}
}
