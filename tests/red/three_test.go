package red_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// redProcess is a process with a RedLock on several servers, each behind a proxy of its own.
type redProcess struct {
	systems []*lockkeeper.System
	proxies []*redistest.Proxy
	red     *lockkeeper.Red
	lock    *lockkeeper.Lock
}

func openRed(t *testing.T, servers []*redistest.Server, name string) *redProcess {
	t.Helper()
	p := &redProcess{}
	for _, s := range servers {
		proxy := redistest.NewProxy(t, s.Addr())
		p.proxies = append(p.proxies, proxy)
		s := locktest.Open(t, proxy.URL(), lockkeeper.Config{Watchdog: locktest.Watchdog, Poll: 300 * time.Millisecond})
		s.Lame = true // servers are killed
		p.systems = append(p.systems, s.System)
	}
	red, err := lockkeeper.RedLock(p.systems...)
	if err != nil {
		t.Fatal(err)
	}
	p.red, p.lock = red, red.Lock(name)
	return p
}

// threeServers gives servers that have been up for long enough to have a vote.
func threeServers(t *testing.T) (servers []*redistest.Server) {
	t.Helper()
	for range 3 {
		s := redistest.Start(t)
		for _, script := range scripts.All {
			if err := s.Do(t, "SCRIPT", "LOAD", script.Source).Error(); err != nil {
				t.Fatal(err)
			}
		}
		servers = append(servers, s)
	}
	awaitVotes(t, openRed(t, servers, redistest.Name(t)).red, locktest.Watchdog, servers)
	return servers
}

// A try that a majority refuses gives back what the others have granted, or may yet
// grant. That release must not hit a later try, however late it arrives.
func TestRedLockLateGiveBack(t *testing.T) {
	servers := threeServers(t)
	name := redistest.Name(t)
	p, other := openRed(t, servers, name), openRed(t, servers, name)
	var foreign []locktest.Key
	for _, s := range servers[:2] {
		k := locktest.Key{Server: s, LockName: name, Name: name, Channel: "redisson_lock__channel:{" + name + "}"}
		k.TakeAs(t, locktest.Redisson, -1)
		foreign = append(foreign, k)
	}
	p.proxies[2].Delay(100 * time.Millisecond) // its grant comes when the others have refused
	late := p.proxies[2].Hold(redistest.Script(scripts.Release.SHA))
	granted := make(chan locktest.Grant, 1)
	go func() {
		hold, err := p.lock.Acquire(locktest.Within(t))
		granted <- locktest.Grant{Hold: hold, Err: err}
	}()
	late.Wait(t)
	p.proxies[2].Delay(0)
	foreign[0].Unlock(t)
	hold := locktest.Got(t, granted).Hold // by the first server and the third

	late.Release(t)
	foreign[1].Unlock(t)
	if second, err := other.lock.TryAcquire(locktest.Within(t)); err == nil {
		t.Errorf("granted twice: a second hold while the first is valid: %v", hold.Valid())
		locktest.Release(t, second)
	} else if !errors.Is(err, lockkeeper.ErrHeld) {
		t.Error(err)
	}
	locktest.Release(t, hold)
}

// What a release of the majority leaves under way elsewhere is not a lock that is held.
func TestRedLockMinorityIsNotHeld(t *testing.T) {
	servers := threeServers(t)
	name := redistest.Name(t)
	p := openRed(t, servers, name)
	k := locktest.Key{Server: servers[1], LockName: name, Name: name}
	k.TakeAs(t, locktest.Redisson, time.Minute)
	if wasHeld, err := p.lock.ForceRelease(locktest.Within(t)); err != nil || wasHeld {
		t.Errorf("a lock on 1 of 3 servers was held: %v, %v", wasHeld, err)
	}
	k.AwaitFree(t) // but it is gone there too, soon
}

// A majority is enough, whichever of the servers does not take part.
func TestRedLockWithoutOneServer(t *testing.T) {
	t.Parallel()
	servers := threeServers(t)
	for i, without := range servers {
		name := redistest.Name(t)
		k := locktest.Key{Server: without, LockName: name, Name: name, Channel: "redisson_lock__channel:{" + name + "}"}
		k.TakeAs(t, locktest.Redisson, -1)
		p, other := openRed(t, servers, name), openRed(t, servers, name)
		hold := locktest.Acquire(t, p.lock, lockkeeper.WithLease(locktest.Watchdog))
		waiter := locktest.AcquireSoon(locktest.Within(t), other.lock)
		k.Unlock(t)
		locktest.Release(t, hold)
		locktest.Release(t, locktest.Got(t, waiter).Hold)
		if i == len(servers)-1 {
			without.Kill(t)
			hold := locktest.Acquire(t, p.lock)
			waiter := locktest.AcquireSoon(locktest.Within(t), other.lock)
			locktest.AwaitWaiters(t, other.lock, 1)
			locktest.Release(t, hold)
			locktest.Release(t, locktest.Got(t, waiter).Hold)
		}
	}
}

// On each of its servers a RedLock is the plain lock of its name. To force that free on one
// of them robs the RedLock of a vote, which its holder gets back, and of no more.
func TestRedLockForcedOnOneServer(t *testing.T) {
	t.Parallel()
	servers := threeServers(t)
	name := redistest.Name(t)
	p := openRed(t, servers, name)
	hold := locktest.Acquire(t, p.lock)
	k := locktest.Key{Server: servers[1], LockName: name, Name: name}
	redistest.Eventually(t, "the hold on that server", func() bool { return k.Exists(t) })
	if was, err := p.systems[1].Lock(name).ForceRelease(locktest.Within(t)); err != nil || !was {
		t.Errorf("%v, %v", was, err)
	}
	redistest.Eventually(t, "the hold on that server again", func() bool { return k.Exists(t) })
	if !hold.Valid() {
		t.Errorf("lost: %v", hold.Err())
	}
	locktest.Release(t, hold)
	k.AwaitFree(t)
}
