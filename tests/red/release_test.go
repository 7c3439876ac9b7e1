package red_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

var releases = redistest.Script(scripts.Release.SHA)

// A majority is enough to say that the lock is released, but the other servers are not
// forgotten: a key that is left on one of them keeps a released lock from everybody as
// soon as another server is down.
func TestRedReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	for what, fault := range map[string]func(*redistest.Proxy) (end func()){
		"a command is lost": func(p *redistest.Proxy) func() {
			lost := p.Hold(releases)
			return func() { lost.Wait(t) }
		},
		"a reply is lost": func(p *redistest.Proxy) func() {
			lost := p.DropRepliesTo(releases, 1)
			return func() { lost.Wait(t) }
		},
		"a server is cut off": func(p *redistest.Proxy) func() {
			p.Refuse(true)
			return func() { p.Refuse(false) }
		},
		"a server hangs": func(p *redistest.Proxy) func() {
			lost := p.Hold(releases, redistest.Silent)
			return func() { lost.Wait(t); p.Cut() }
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := f.party(t)
			hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
			f.awaitHeld(t, "1", allFive...)
			first, second := fault(f.proxies[1]), fault(f.proxies[4])
			locktest.Release(t, hold)
			first()
			second()
			f.awaitGivenBack(t, allFive...)
		})
	}
}

// The same when the release is forced, by the holder's process or by another.
func TestRedForceReleaseReachesEveryServer(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	for what, command := range map[string]func([]string) bool{
		"the look is lost": redistest.Script(scripts.Inspect.SHA), "the release is lost": releases,
	} {
		t.Run(what, func(t *testing.T) {
			p := f.party(t)
			for i := range f.servers {
				f.key(i).TakeAs(t, locktest.Redisson, time.Minute)
			}
			first, second := f.proxies[1].Hold(command), f.proxies[4].Hold(command)
			if was, err := p.ForceRelease(locktest.Within(t)); err != nil || !was {
				t.Errorf("%v, %v", was, err)
			}
			first.Wait(t)
			second.Wait(t)
			f.awaitGivenBack(t, allFive...)
			hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
			f.awaitHeld(t, "1", allFive...)
			first, second = f.proxies[1].Hold(command), f.proxies[4].Hold(command)
			if was, err := p.ForceRelease(locktest.Within(t)); err != nil || !was {
				t.Errorf("%v, %v", was, err)
			}
			locktest.IsOver(t, hold)
			first.Wait(t)
			second.Wait(t)
			f.awaitGivenBack(t, allFive...)
		})
	}
}

// A forced release that arrives late must not hit whoever has got the lock since.
func TestRedLateForceRelease(t *testing.T) {
	t.Parallel()
	f := newFive(t, redConfig)
	p, other := f.party(t), f.party(t)
	for i := range f.servers {
		f.key(i).TakeAs(t, locktest.Redisson, time.Minute)
	}
	var late []*redistest.Held
	for _, i := range []int{0, 1} {
		late = append(late, f.proxies[i].Hold(func(command []string) bool {
			return releases(command) || redistest.Script(scripts.ForceRelease.SHA)(command)
		}))
	}
	if was, err := p.ForceRelease(locktest.Within(t)); err != nil || !was {
		t.Errorf("%v, %v", was, err)
	}
	hold := locktest.AcquireIn(t, locktest.Within(t), other.Lock)
	redistest.Eventually(t, "the next holder on all servers", func() bool {
		for i := range f.servers {
			if owners := f.key(i).Owners(t); len(owners) != 1 || owners[locktest.Redisson] != "" {
				return false
			}
		}
		return true
	})
	for i, each := range late {
		each.Release(t)
		if owners := f.key(i).Owners(t); len(owners) != 1 {
			t.Errorf("server %d has been robbed: %v", i, owners)
		}
	}
	locktest.Release(t, hold)
	f.awaitGivenBack(t, allFive...)
}

// Close tries once more what a server has not confirmed, and says so if it still does not.
func TestRedCloseWithAReleaseOwed(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 4 * time.Second
	f := newFive(t, cfg)
	for _, back := range []bool{true, false} {
		p := f.party(t)
		hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
		f.awaitHeld(t, "1", allFive...)
		f.proxies[4].Refuse(true)
		locktest.Release(t, hold)
		f.awaitFree(t, 0, 1, 2, 3)
		f.proxies[4].Refuse(!back)
		for i, site := range p.sites {
			err := site.Close(locktest.Within(t))
			if want := i < 4 || back; (err == nil) != want {
				t.Errorf("the server is back: %v; system %d: %v", back, i, err)
			}
		}
		if left := f.key(4).Exists(t); left == back {
			t.Errorf("the server is back: %v; the key is left: %v", back, left)
		}
		f.proxies[4].Refuse(false)
	}
}

// So it does of a server that refuses the release for good.
func TestRedCloseWithAReleaseRefused(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 4 * time.Second
	f := newFive(t, cfg)
	p := f.party(t)
	hold := locktest.AcquireIn(t, locktest.Within(t), p.Lock)
	f.awaitHeld(t, "1", allFive...)
	f.key(4).Do(t, "ACL", "SETUSER", "default", "-hdel")
	locktest.Release(t, hold)
	f.awaitFree(t, 0, 1, 2, 3)
	for i, site := range p.sites {
		if err := site.Close(locktest.Within(t)); (err == nil) != (i < 4) {
			t.Errorf("system %d: %v", i, err)
		}
	}
	if !f.key(4).Exists(t) {
		t.Error("the key is gone: there was nothing to tell")
	}
}

// Whatever was lost on the way to a minority: nobody loses a lock for it, and when it has
// ended, no server keeps the key of a lock that nobody holds until its TTL is over.
func TestRedAudit(t *testing.T) {
	t.Parallel()
	cfg := redConfig
	cfg.Watchdog = 6 * time.Second
	f := newFive(t, cfg)
	stop := make(chan struct{})
	var work sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for client := range 3 {
		p := f.party(t)
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				l, own := p.Lock, n%2 == 0
				if own { // nobody asks for it again, and finds what is left of it
					l = p.red.Lock(fmt.Sprint(f.name, "-", client, "-", n))
				}
				outcome := useOnce(l, own && n%8 == 0)
				mu.Lock()
				outcomes[outcome]++
				mu.Unlock()
			}
		})
	}
	votes := redistest.Script(scripts.QuorumAcquire.SHA)
	for range 12 {
		minority := rand.Perm(5)[:2]
		for _, i := range minority {
			switch proxy := f.proxies[i]; rand.IntN(4) {
			case 0:
				proxy.Cut()
			case 1:
				proxy.Refuse(true)
			case 2:
				proxy.DropRepliesTo(releases, 1+rand.IntN(3))
				proxy.DropRepliesTo(votes, 1+rand.IntN(3))
			case 3:
				proxy.Hold(releases)
			}
		}
		time.Sleep(rand.N(400 * time.Millisecond))
		for _, i := range minority {
			f.proxies[i].Heal()
		}
	}
	close(stop)
	locktest.Limited(t, "the clients to end", func() bool { work.Wait(); return true })
	t.Logf("%v", outcomes)
	if lost := "release: " + lockkeeper.ErrLost.Error(); outcomes[lost] > 0 || outcomes["released"] == 0 {
		t.Errorf("%d were released, %d lost", outcomes["released"], outcomes[lost])
	}
	for i, server := range f.servers {
		expiry := map[string]time.Time{}
		redistest.Eventually(t, "the locks to be given back", func() bool {
			left := server.Keys(t, f.name+"*")
			for _, name := range left {
				if at := (locktest.Key{Server: server, Name: name}).Expiry(t); !at.IsZero() {
					expiry[name] = at
				}
			}
			return len(left) == 0
		})
		for name, at := range expiry {
			if time.Now().After(at) {
				t.Errorf("server %d held %s until its TTL was over", i, name)
			}
		}
	}
}

// useOnce tries to take a lock and gives it back, by force or not, and says what came of it.
func useOnce(l *lockkeeper.Lock, force bool) string {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Limit)
	defer cancel()
	hold, err := l.TryAcquire(ctx)
	if err != nil {
		return "refused: " + errorKind(err)
	}
	if force {
		_, err = l.ForceRelease(ctx)
	} else {
		err = hold.Release(ctx)
	}
	if err != nil {
		return "release: " + errorKind(err)
	}
	return "released"
}
