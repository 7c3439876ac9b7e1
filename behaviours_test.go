package lockkeeper_test

// Behaviours that the conformance suite does not reach; see conformance/BEHAVIOURS.md.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// redProcess is a process with a RedLock on several servers, each behind a proxy of its own.
type redProcess struct {
	systems []*lockkeeper.System
	proxies []*redistest.Proxy
	lock    *lockkeeper.Lock
}

func openRed(t *testing.T, servers []*redistest.Server, name string) *redProcess {
	t.Helper()
	p := &redProcess{}
	for _, s := range servers {
		proxy := redistest.NewProxy(t, s.Addr())
		p.proxies = append(p.proxies, proxy)
		p.systems = append(p.systems, open(t, proxy.URL(), lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond}).System)
	}
	red, err := lockkeeper.RedLock(p.systems...)
	if err != nil {
		t.Fatal(err)
	}
	p.lock = red.Lock(name)
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
	first := openRed(t, servers, redistest.Name(t))
	hold, err := first.lock.Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, hold)
	return servers
}

// A try that a majority refuses gives back what the others have granted, or may yet
// grant. That release must not hit a later try, however late it arrives.
func TestRedLockLateGiveBack(t *testing.T) {
	servers := threeServers(t)
	name := redistest.Name(t)
	p, other := openRed(t, servers, name), openRed(t, servers, name)
	var foreign []key
	for _, s := range servers[:2] {
		k := key{server: s, lock: name, name: name, channel: "redisson_lock__channel:{" + name + "}"}
		k.takeAs(t, redisson, -1)
		foreign = append(foreign, k)
	}
	p.proxies[2].Delay(100 * time.Millisecond) // its grant comes when the others have refused
	late := p.proxies[2].Hold(redistest.Script(scripts.Release.SHA))
	granted := make(chan grant, 1)
	go func() {
		hold, err := p.lock.Acquire(within(t))
		granted <- grant{hold: hold, err: err}
	}()
	late.Wait(t)
	p.proxies[2].Delay(0)
	foreign[0].unlock(t)
	hold := got(t, granted).hold // by the first server and the third

	late.Release(t)
	foreign[1].unlock(t)
	if second, err := other.lock.TryAcquire(within(t)); err == nil {
		t.Errorf("granted twice: a second hold while the first is valid: %v", hold.Valid())
		release(t, second)
	} else if !errors.Is(err, lockkeeper.ErrHeld) {
		t.Error(err)
	}
	release(t, hold)
}

// What a release of the majority leaves under way elsewhere is not a lock that is held.
func TestRedLockMinorityIsNotHeld(t *testing.T) {
	servers := threeServers(t)
	name := redistest.Name(t)
	p := openRed(t, servers, name)
	k := key{server: servers[1], lock: name, name: name}
	k.takeAs(t, redisson, time.Minute)
	if wasHeld, err := p.lock.ForceRelease(within(t)); err != nil || wasHeld {
		t.Errorf("a lock on 1 of 3 servers was held: %v, %v", wasHeld, err)
	}
	k.isFree(t) // but it is gone there too
}

// The subscriber of one System is known to the actors of another as soon as there is one.
func TestMultiLockWaitsOnANewSystem(t *testing.T) {
	server := redistest.Shared(t)
	k := newKey(t, server)
	k.takeAs(t, redisson, time.Minute)
	var wg sync.WaitGroup
	var locks []*lockkeeper.Lock
	for i := range 2 {
		s := open(t, server.URL(), lockkeeper.Config{})
		locks = append(locks, s.Lock(k.lock), s.Lock(fmt.Sprint(k.lock, i)))
	}
	locks[0] = lockkeeper.MultiLock(locks[1:]...)
	wg.Add(1)
	go func() {
		defer wg.Done()
		hold, err := locks[0].Acquire(within(t))
		if err != nil {
			t.Error(err)
			return
		}
		release(t, hold)
	}()
	k.awaitSubscribers(t, 1)
	k.unlock(t)
	wg.Wait()
}

// kindsOf makes a lock of each kind that one System has.
var kindsOf = map[string]func(s *site, name string) *lockkeeper.Lock{
	"plain":  func(s *site, name string) *lockkeeper.Lock { return s.Lock(name) },
	"fenced": func(s *site, name string) *lockkeeper.Lock { return s.FencedLock(name) },
	"fair":   func(s *site, name string) *lockkeeper.Lock { return s.FairLock(name) },
	"read":   func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Read() },
	"write":  func(s *site, name string) *lockkeeper.Lock { return s.ReadWriteLock(name).Write() },
	"multi": func(s *site, name string) *lockkeeper.Lock {
		return lockkeeper.MultiLock(s.Lock(name), s.FairLock(name+" too"), s.ReadWriteLock(name+" read").Read())
	},
}

var briefly = lockkeeper.Config{Watchdog: watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: time.Second}

func mustAcquire(t *testing.T, lock *lockkeeper.Lock, options ...lockkeeper.Option) *lockkeeper.Hold {
	t.Helper()
	return got(t, acquiring(within(t), lock, options...)).hold
}

func acquiring(ctx context.Context, lock *lockkeeper.Lock, options ...lockkeeper.Option) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		hold, err := lock.Acquire(ctx, options...)
		granted <- grant{hold, err, time.Now()}
	}()
	return granted
}

// refusedTry checks that a try finds the lock held.
func refusedTry(t *testing.T, lock *lockkeeper.Lock) {
	t.Helper()
	redistest.Eventually(t, "an answer", func() bool {
		hold, err := lock.TryAcquire(within(t))
		switch {
		case err == nil:
			release(t, hold)
			t.Fatalf("%s was granted", lock.Name())
		case errors.Is(err, lockkeeper.ErrUnavailable):
			return false
		}
		isError(t, err, lockkeeper.ErrHeld)
		return true
	})
}

func waits(t *testing.T, lock *lockkeeper.Lock, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("%d waiters", n), func() bool {
		status, err := lock.Inspect(within(t))
		return err == nil && status.Waiters == n
	})
}

func isLost(t *testing.T, hold *lockkeeper.Hold) {
	t.Helper()
	redistest.Eventually(t, "the loss", func() bool { return errors.Is(hold.Err(), lockkeeper.ErrLost) })
}

// Redis forgets everything: the holder is told, its release fails, and later holds of
// the same name are renewed as if nothing had been.
func TestKindsOverARestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, other := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	holds, locks := map[string]*lockkeeper.Hold{}, map[string]*lockkeeper.Lock{}
	for kind, lock := range kindsOf {
		locks[kind] = lock(s, redistest.Name(t)+kind)
		holds[kind] = mustAcquire(t, locks[kind])
	}
	server.Restart(t)
	for _, hold := range holds {
		isLost(t, hold)
		isError(t, hold.Release(within(t)), lockkeeper.ErrLost)
	}
	for range 2 {
		for kind, lock := range locks {
			holds[kind] = mustAcquire(t, lock)
		}
		lasts(t, 3*watchdog/2, slices.Collect(maps.Values(holds))...)
		for _, hold := range holds {
			release(t, hold)
		}
	}
	for kind, lock := range locks {
		release(t, mustAcquire(t, kindsOf[kind](other, lock.Name())))
	}
}

// In a cluster all keys of a lock lie in one slot, and a MultiLock's members in any.
func TestKindsInACluster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	server.Do(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	redistest.Eventually(t, "the cluster to be up", func() bool {
		info, err := server.Do(t, "CLUSTER", "INFO").ToString()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	s, other := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		for range 3 {
			lock := make(s, name)
			hold := mustAcquire(t, lock)
			inner, err := lock.Acquire(hold.Context())
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if kind != "read" {
				refusedTry(t, make(other, name))
			}
			waiter := acquiring(within(t), make(other, name))
			release(t, inner)
			release(t, hold)
			release(t, got(t, waiter).hold)
		}
		if _, err := make(s, name).ForceRelease(within(t)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The prefix comes before every key of every kind, inside the braces of those that have some.
func TestKindsWithAPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	prefixed := briefly
	prefixed.KeyPrefix = "test::"
	s, other := open(t, server.URL(), prefixed), open(t, server.URL(), prefixed)
	for kind, make := range kindsOf {
		name := redistest.Name(t) + kind
		hold := mustAcquire(t, make(s, name))
		waiter := acquiring(within(t), make(other, name))
		if kind != "read" {
			waits(t, make(other, name), 1)
		}
		keys := server.Keys(t, "*")
		for _, key := range keys {
			if strings.Contains(key, name) && !strings.Contains(key, "test::"+name) {
				t.Errorf("%s: the key %q has no prefix", kind, key)
			}
		}
		release(t, hold)
		release(t, got(t, waiter).hold)
	}
}

// Whoever does not hold a lock does not release it, whatever its kind and mode.
func TestStrangersReleaseNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, elsewhere := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	for kind, lock := range map[string]*messages.Lock{
		"plain":  {},
		"fenced": {Kind: messages.Kind_KIND_FENCED},
		"fair":   {Kind: messages.Kind_KIND_FAIR},
		"write":  {Kind: messages.Kind_KIND_READ_WRITE},
		"read":   {Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED},
	} {
		lock.Name = redistest.Name(t) + kind
		holder, stranger, abroad := s.probe(t), s.probe(t), elsewhere.probe(t)
		granted := ask[*messages.Acquired](t, holder, &messages.Acquire{Lock: lock})
		for _, p := range []*probe{stranger, abroad} {
			refuses(t, p, &messages.Release{Lock: lock}, messages.Reason_REASON_NOT_HELD)
			refuses(t, p, &messages.Release{Lock: lock, Owner: p.pid}, messages.Reason_REASON_NOT_HELD)
		}
		refuses(t, abroad, &messages.Release{Lock: lock, HoldId: granted.HoldId}, messages.Reason_REASON_NOT_HELD)
		if status := ask[*messages.Status](t, holder, &messages.Inspect{Lock: lock}); !status.HeldHere {
			t.Errorf("%s: it was released by strangers: %v", kind, status)
		}
		ask[*messages.Released](t, holder, &messages.Release{Lock: lock})
	}
}

// With nothing but ended leases to move it on, a fair lock goes round in order.
func TestFairLeasesEndInOrder(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	sites := []*site{open(t, server.URL(), briefly), open(t, server.URL(), briefly)}
	name := redistest.Name(t)
	var waiters []<-chan grant
	for i := range 6 {
		lock := sites[i%2].FairLock(name)
		waiters = append(waiters, acquiring(within(t), lock, lockkeeper.WithLease(300*time.Millisecond)))
		redistest.Eventually(t, "the request to stand in line", func() bool {
			status, err := lock.Inspect(within(t))
			return err == nil && (status.Subscribers >= i || i == 0) && status.Locked
		})
	}
	var before time.Time
	for i, w := range waiters {
		g := got(t, w)
		if g.at.Before(before) {
			t.Errorf("the request %d was granted before its predecessor", i)
		}
		before = g.at
		if i == len(waiters)-1 {
			release(t, g.hold)
		}
	}
}

// A waiter that gives up while Redis is silent leaves its place in the queue.
func TestFairWaiterGivesUpWhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	config := briefly
	config.Watchdog = 2 * redistest.Limit // the holder outlives the silence
	config.CallTimeout = 200 * time.Millisecond
	s, other := open(t, server.URL(), config), open(t, server.URL(), config)
	name := redistest.Name(t)
	hold := mustAcquire(t, s.FairLock(name))
	first := acquiring(within(t), other.FairLock(name))
	waits(t, other.FairLock(name), 1)
	server.Pause(t)
	_, err := s.FairLock(name).Acquire(within(t), lockkeeper.WithWait(500*time.Millisecond))
	server.Resume(t)
	if !errors.Is(err, lockkeeper.ErrTimeout) && !errors.Is(err, lockkeeper.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	queue := "redisson_lock_queue:{" + name + "}"
	redistest.Eventually(t, "the first to be alone in the queue", func() bool {
		n, err := server.Do(t, "LLEN", queue).AsInt64()
		return err == nil && n == 1
	})
	release(t, hold)
	release(t, got(t, first).hold)
	redistest.Eventually(t, "the queue to be gone", func() bool { return len(server.Keys(t, "*"+name+"*")) == 0 })
}

// A crowd arrives at once, and everybody gets the lock.
func TestFairCrowd(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, server.URL(), lockkeeper.Config{})
	lock := s.FairLock(redistest.Name(t))
	var wg sync.WaitGroup
	visits := 0
	for range 500 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			hold, err := lock.Acquire(within(t), lockkeeper.WithLease(10*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			visits++ // the lock guards it
			if err := hold.Release(within(t)); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if visits != 500 {
		t.Errorf("%d visits", visits)
	}
}

// Every reader has a lease of its own: what becomes of one does not shorten another's,
// nor does a living reader keep that of a dead process alive.
func TestReadersLeasesAreTheirOwn(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	const long, short = 2 * time.Second, 300 * time.Millisecond
	a, b, c := open(t, server.URL(), briefly), open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	t.Run("a shorter one ends or is released", func(t *testing.T) {
		name := redistest.Name(t)
		lock := func(s *site) *lockkeeper.ReadWrite { return s.ReadWriteLock(name) }
		began := time.Now()
		longer := mustAcquire(t, lock(a).Read(), lockkeeper.WithLease(long))
		shorter := mustAcquire(t, lock(b).Read(), lockkeeper.WithLease(short))
		release(t, mustAcquire(t, lock(b).Read(), lockkeeper.WithLease(short)))
		writer := acquiring(within(t), lock(c).Write())
		isLost(t, shorter)
		isLost(t, longer)
		g := got(t, writer)
		// A lease is given up a little before it ends.
		if early := g.at.Sub(began); early < 9*long/10 {
			t.Errorf("a writer was let in %v after a reader that had the lock for %v", early, long)
		}
		release(t, g.hold)
	})
	t.Run("all enter when a writer's ends", func(t *testing.T) {
		name := redistest.Name(t)
		hold := mustAcquire(t, a.ReadWriteLock(name).Write(), lockkeeper.WithLease(short))
		first, second := acquiring(within(t), b.ReadWriteLock(name).Read()), acquiring(within(t), c.ReadWriteLock(name).Read())
		isLost(t, hold)
		one := got(t, first).hold
		release(t, got(t, second).hold) // while the first reads
		release(t, one)
	})
	t.Run("a re-entry", func(t *testing.T) {
		lock := a.ReadWriteLock(redistest.Name(t))
		hold := mustAcquire(t, lock.Read(), lockkeeper.WithLease(short))
		inner, err := lock.Read().Acquire(hold.Context(), lockkeeper.WithLease(short))
		if err != nil {
			t.Fatal(err)
		}
		release(t, inner)
		release(t, mustAcquire(t, b.ReadWriteLock(lock.Read().Name()).Write())) // when the first has ended
		isLost(t, hold)
	})
	t.Run("a dead process", func(t *testing.T) {
		proxy := redistest.NewProxy(t, server.Addr())
		dead := open(t, proxy.URL(), briefly)
		dead.lame = true
		name := redistest.Name(t)
		lost := mustAcquire(t, dead.ReadWriteLock(name).Read())
		lives := mustAcquire(t, a.ReadWriteLock(name).Read())
		proxy.Refuse(true)
		proxy.Cut()
		isLost(t, lost)
		lasts(t, 3*watchdog/2, lives)
		writer := acquiring(within(t), b.ReadWriteLock(name).Write())
		waits(t, b.ReadWriteLock(name).Write(), 1)
		release(t, lives)
		release(t, got(t, writer).hold)
		proxy.Heal()
	})
}

// What readers and writers see of each other, step by step.
func TestReadWriteSteps(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, other := open(t, server.URL(), briefly), open(t, server.URL(), briefly)
	for _, name := range []string{redistest.Name(t), "{" + redistest.Name(t) + "}:abc:key"} {
		lock, theirs := s.ReadWriteLock(name), other.ReadWriteLock(name)
		if wasHeld, err := theirs.Read().ForceRelease(within(t)); err != nil || wasHeld {
			t.Fatalf("a free lock was force-released: %v, %v", wasHeld, err)
		}
		write := mustAcquire(t, lock.Write())
		refusedTry(t, theirs.Read())
		refusedTry(t, theirs.Write())
		// Without its end, since the context of the write hold ends with that.
		read, err := lock.Read().Acquire(context.WithoutCancel(write.Context()))
		if err != nil {
			t.Fatal(err)
		}
		refusedTry(t, theirs.Read())
		var readers []<-chan grant
		for range 20 {
			readers = append(readers, acquiring(within(t), theirs.Read()))
		}
		waits(t, theirs.Read(), 20)
		release(t, write) // the writer has become a reader, and lets the others in
		for _, r := range readers {
			defer release(t, got(t, r).hold)
		}
		if _, err := lock.Write().Acquire(read.Context()); !errors.Is(err, lockkeeper.ErrReentry) {
			t.Errorf("a reader became a writer: %v", err)
		}
		refusedTry(t, lock.Write())
		status, err := theirs.Read().Inspect(within(t))
		if err != nil || !status.Locked || !status.Shared || status.Holders != 2 {
			t.Errorf("held by readers in 2 processes, and the state is %+v, %v", status, err)
		}
		lasts(t, 3*watchdog/2, read) // renewal survives the change
		release(t, read)
		refusedTry(t, lock.Write()) // their readers still have it
	}
}

// Try means once, for all the members.
func TestMultiLockTriesOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	name := redistest.Name(t)
	answers := make(chan error, 10)
	for i := range 10 {
		s := open(t, server.URL(), briefly)
		go func() {
			locks := []*lockkeeper.Lock{s.Lock(name + "a"), s.FencedLock(name + "b"), s.FairLock(name + "c")}
			if i%2 == 0 {
				locks[0], locks[2] = locks[2], locks[0]
			}
			_, err := lockkeeper.MultiLock(locks...).TryAcquire(within(t), lockkeeper.WithLease(redistest.Limit))
			answers <- err
		}()
	}
	granted := 0
	for range 10 {
		if err := await(t, "an answer", answers); err == nil {
			granted++
		} else {
			isError(t, err, lockkeeper.ErrHeld)
		}
	}
	if granted != 1 {
		t.Errorf("granted %d times", granted)
	}
}

// A majority is enough, whichever of the servers does not take part.
func TestRedLockWithoutOneServer(t *testing.T) {
	t.Parallel()
	servers := threeServers(t)
	for i, without := range servers {
		name := redistest.Name(t)
		k := key{server: without, lock: name, name: name, channel: "redisson_lock__channel:{" + name + "}"}
		k.takeAs(t, redisson, -1)
		p, other := openRed(t, servers, name), openRed(t, servers, name)
		hold := mustAcquire(t, p.lock, lockkeeper.WithLease(watchdog))
		waiter := acquiring(within(t), other.lock)
		k.unlock(t)
		release(t, hold)
		release(t, got(t, waiter).hold)
		if i == len(servers)-1 {
			without.Kill(t)
			hold := mustAcquire(t, p.lock)
			waiter := acquiring(within(t), other.lock)
			waits(t, other.lock, 1)
			release(t, hold)
			release(t, got(t, waiter).hold)
		}
	}
}

// lasts checks that none of the holds is lost for that long.
func lasts(t testing.TB, d time.Duration, holds ...*lockkeeper.Hold) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for _, hold := range holds {
		select {
		case <-hold.Context().Done():
		case <-ctx.Done():
		}
		if err := hold.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
