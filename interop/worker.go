package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
)

// worker is a thread of the protocol.
type worker struct {
	*goDriver
	holds map[string][]held // by lock, the inner ones last
	// taken are the permits of expirable semaphores, by their ids.
	taken map[string]*lockkeeper.Permit
}

// held is a hold and its kind: a writer may hold the read lock as well.
type held struct {
	kind string
	*lockkeeper.Hold
}

func (w *worker) answer(request line) line {
	answer := line{id: request.id, word: "ok", values: map[string]string{}}
	if err := w.do(request, answer); err != nil {
		return line{id: request.id, word: "err", values: map[string]string{"class": class(err), "message": err.Error()}}
	}
	return answer
}

// classes are the errors that the cases distinguish, the first match first: the error of a lost lock may match others.
var classes = []struct {
	name string
	err  error
}{
	{"ErrLost", lockkeeper.ErrLost},
	{"ErrNotHeld", lockkeeper.ErrNotHeld},
	{"ErrUnavailable", lockkeeper.ErrUnavailable},
	{"ErrClosed", lockkeeper.ErrClosed},
}

func class(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "error"
}

// client is the one that the request names by its index.
func (w *worker) client(request line) client {
	i, _ := strconv.Atoi(request.values["client"])
	return w.clients[i%len(w.clients)]
}

// lock parses a request: its verb, the lock and the lock's kind, and a key for its holds, which
// is the same for both modes of a read/write lock.
func (w *worker) lock(request line) (verb string, lock *lockkeeper.Lock, kind, about string, err error) {
	system, values := w.client(request).locks, request.values
	switch request.word {
	case multi.several:
		kinds, members := strings.Split(values["kinds"], ","), []*lockkeeper.Lock{}
		for i, name := range strings.Split(values["names"], ",") {
			lock, err := open(system, kinds[min(i, len(kinds)-1)], name)
			if err != nil {
				return "", nil, "", "", err
			}
			members = append(members, lock)
		}
		return values["op"], lockkeeper.MultiLock(members...), multi.kind, "multi " + values["names"], nil
	case red.several:
		name, _, _ := strings.Cut(values["names"], ",")
		if w.red == nil {
			return "", nil, "", "", errors.New("a redlock takes three -redis flags")
		}
		return values["op"], w.red.Lock(name), red.kind, "red " + name, nil
	}
	kind = values["kind"]
	lock, err = open(system, kind, values["name"])
	if about = kind; kind == "read" || kind == "write" {
		about = "readwrite"
	}
	return request.word, lock, kind, about + " " + values["name"], err
}

func open(s *lockkeeper.System, kind, name string) (*lockkeeper.Lock, error) {
	switch kind {
	case "plain":
		return s.Lock(name), nil
	case "fenced":
		return s.FencedLock(name), nil
	case "fair":
		return s.FairLock(name), nil
	case "read":
		return s.ReadWriteLock(name).Read(), nil
	case "write":
		return s.ReadWriteLock(name).Write(), nil
	}
	return nil, fmt.Errorf("unknown kind: %q", kind)
}

func (w *worker) do(request, answer line) error {
	if request.word == "hello" {
		answer.set("client="+w.client(request).locks.ID(), fmt.Sprint("pid=", os.Getpid()))
		return nil
	}
	if (form{kind: request.word}).synchronizes() {
		return w.synchronize(request, answer)
	}
	verb, lock, kind, about, err := w.lock(request)
	if err != nil {
		return err
	}
	ctx := context.Background()
	switch verb {
	case "lock", "trylock":
		return w.acquire(request, answer, verb, lock, kind, about)

	case "unlock":
		i := w.innermost(about, kind)
		if i < 0 {
			return lockkeeper.ErrNotHeld
		}
		hold := w.holds[about][i]
		w.holds[about] = append(w.holds[about][:i:i], w.holds[about][i+1:]...)
		answer.set(at())
		return hold.Release(ctx)

	case "extend": // only in Go
		i := w.innermost(about, kind)
		if i < 0 {
			return lockkeeper.ErrNotHeld
		}
		return extend(request, w.holds[about][i])

	case "heldbyme":
		i := w.innermost(about, kind)
		answer.set(fmt.Sprint("held=", i >= 0 && w.holds[about][i].Valid()))
		return nil

	case "lost": // waits until the holder is notified; Redisson has no equivalent
		i := w.innermost(about, kind)
		if i < 0 {
			return lockkeeper.ErrNotHeld
		}
		hold := w.holds[about][i]
		<-hold.Context().Done()
		why := context.Cause(hold.Context())
		answer.set(at(), "class="+class(why), "message="+why.Error())
		return nil

	case "count":
		n := 0
		for _, hold := range w.holds[about] {
			if hold.kind == kind {
				n++
			}
		}
		answer.set(fmt.Sprint("count=", n))
		return nil

	case "force":
		was, err := lock.ForceRelease(ctx)
		answer.set(fmt.Sprint("was=", was))
		return err

	case "islocked", "ttl", "inspect": // "inspect" is only in Go: Redisson cannot read the hold count of another owner
		s, err := lock.Inspect(ctx)
		answer.set(fmt.Sprint("locked=", s.Locked),
			fmt.Sprint("ttl=", s.TTL.Milliseconds()), fmt.Sprint("count=", s.HoldCount),
			"holder="+s.Holder)
		return err

	case "rmw":
		return w.rounds(request, answer, lock, func() error { return w.addOne(ctx, w.client(request).redis, request.values["key"]) })

	case "peek":
		torn := 0
		err := w.rounds(request, answer, lock, func() error {
			same, err := w.same(ctx, w.client(request).redis, request.values["key"])
			if !same {
				torn++
			}
			return err
		})
		answer.set(fmt.Sprint("torn=", torn))
		return err

	case "take":
		return w.take(ctx, request, answer, lock)

	}
	return fmt.Errorf("unknown verb: %q", verb)
}

// extend gives a hold or a permit the lease of the request, or without a lease the lease of the watchdog.
func extend(request line, held interface {
	Extend(ctx context.Context, d time.Duration) error
	KeepAlive(ctx context.Context) error
}) error {
	if request.values["lease"] == "" {
		return held.KeepAlive(context.Background())
	}
	lease, err := strconv.Atoi(request.values["lease"])
	if err != nil {
		return err
	}
	return held.Extend(context.Background(), milliseconds(lease))
}

// innermost finds the last hold of that kind; -1 if there is none.
func (w *worker) innermost(about, kind string) int {
	for i := len(w.holds[about]) - 1; i >= 0; i-- {
		if w.holds[about][i].kind == kind {
			return i
		}
	}
	return -1
}

func (w *worker) acquire(request, answer line, verb string, lock *lockkeeper.Lock, kind, about string) error {
	options, err := options(request, verb)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if n := len(w.holds[about]); n > 0 {
		ctx = w.holds[about][n-1].Context() // re-enters
	}
	began := time.Now()
	hold, err := lock.Acquire(ctx, options...)
	answer.set(at(), fmt.Sprint("nanos=", time.Since(began).Nanoseconds()), fmt.Sprint("held=", err == nil))
	if errors.Is(err, lockkeeper.ErrHeld) || errors.Is(err, lockkeeper.ErrTimeout) {
		return nil
	}
	if err == nil {
		w.holds[about] = append(w.holds[about], held{kind, hold})
		if hold.Token() != 0 {
			answer.set(fmt.Sprint("token=", hold.Token()))
		}
	}
	return err
}

// rounds calls do under the lock, as often as the request says.
func (w *worker) rounds(request, answer line, lock *lockkeeper.Lock, do func() error) error {
	rounds, err := strconv.Atoi(request.values["rounds"])
	if err != nil {
		return err
	}
	pause, _ := strconv.Atoi(request.values["pause"]) // after each round, if it is given
	ctx, began := context.Background(), time.Now()
	for range rounds {
		hold, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(do(), hold.Release(ctx)); err != nil {
			return err
		}
		time.Sleep(milliseconds(pause))
	}
	answer.set(fmt.Sprint("rounds=", rounds), fmt.Sprint("micros=", time.Since(began).Microseconds()))
	return nil
}

// take acquires the lock again and again until a given time, and appends each hold to a list in
// Redis: asked, granted, left.
func (w *worker) take(ctx context.Context, request, answer line, lock *lockkeeper.Lock) error {
	hold, err := strconv.Atoi(request.values["hold"])
	until, wrong := strconv.ParseInt(request.values["until"], 10, 64)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	redis, rounds := w.client(request).redis, 0
	for ; time.Now().UnixMicro() < until; rounds++ {
		asked := time.Now()
		h, err := lock.Acquire(ctx)
		if err != nil {
			return err
		}
		granted := time.Now()
		time.Sleep(milliseconds(hold))
		had := fmt.Sprint(request.values["as"], " ", asked.UnixMicro(), " ", granted.UnixMicro(), " ", time.Now().UnixMicro())
		err = redis.Do(ctx, redis.B().Rpush().Key(request.values["key"]).Element(had).Build()).Error()
		if err := errors.Join(err, h.Release(ctx)); err != nil {
			return err
		}
	}
	answer.set(fmt.Sprint("rounds=", rounds))
	return nil
}

// addOne adds 1 to a key by a GET and a SET, which loses updates unless the lock excludes others.
func (w *worker) addOne(ctx context.Context, redis rueidis.Client, key string) error {
	n, err := redis.Do(ctx, redis.B().Get().Key(key).Build()).AsInt64()
	if err == nil || rueidis.IsRedisNil(err) {
		err = redis.Do(ctx, redis.B().Set().Key(key).Value(strconv.FormatInt(n+1, 10)).Build()).Error()
	}
	return err
}

// same reads a key twice, which sees a change in between unless the lock excludes writers.
func (w *worker) same(ctx context.Context, redis rueidis.Client, key string) (bool, error) {
	var seen [2]string
	for i := range seen {
		var err error
		if seen[i], err = redis.Do(ctx, redis.B().Get().Key(key).Build()).ToString(); err != nil && !rueidis.IsRedisNil(err) {
			return false, err
		}
	}
	return seen[0] == seen[1], nil
}

// options are the options of a lock, a trylock, or a request for a permit that expires.
func options(request line, verb string) (options []lockkeeper.Option, err error) {
	if request.values["lease"] != "" {
		lease, err := strconv.Atoi(request.values["lease"])
		if err != nil {
			return nil, err
		}
		options = append(options, lockkeeper.WithLease(milliseconds(lease)))
	}
	waits, err := waits(request, verb)
	for _, wait := range waits {
		options = append(options, wait)
	}
	return options, err
}

// waits has the option for the wait of a request; without wait= a trylock tries once.
func waits(request line, verb string) ([]lockkeeper.WaitOption, error) {
	switch {
	case request.values["wait"] != "":
		wait, err := strconv.Atoi(request.values["wait"])
		return []lockkeeper.WaitOption{lockkeeper.WithWait(milliseconds(wait))}, err
	case verb == "trylock":
		return []lockkeeper.WaitOption{lockkeeper.WithWait(0)}, nil
	}
	return nil, nil
}

// at is the present time in the drivers' format.
func at() string { return fmt.Sprint("at=", time.Now().UnixMicro()) }

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
