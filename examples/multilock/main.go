// Multilock shows transfers between accounts, each under the locks of both: all or
// nothing, whatever order they are named in, and nothing is held while something is
// waited for.
//
//	go run ./examples/multilock
//
// needs nothing but Go: the Redis is inside the program. With -redis redis://…
// the same happens on a real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/embedded"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/program"
	"github.com/lockkeeper-go/lockkeeper/internal/quiet"
)

const (
	prefix   = "multilock-example:"
	patience = 20 * time.Second // how long anything may take before it has gone wrong
	opening  = 100              // what is on each account in the beginning
	each     = 25               // how many transfers each clerk makes
)

func main() { program.Main("multilock", play) }

func play(redis *embedded.Redis, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var banks [2]*bank // two processes
	for i := range banks {
		locks, err := lockkeeper.New(quiet.ActorSystem(), redis, lockkeeper.Config{KeyPrefix: prefix})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) }()
		banks[i] = &bank{redis: redis, locks: locks}
	}
	accounts := []string{"anna", "bert", "carl"}
	defer func() {
		for _, account := range accounts {
			err = errors.Join(err, redis.Do(context.WithoutCancel(ctx), redis.B().Del().Key(balance(account)).Build()).Error())
		}
	}()
	for _, account := range accounts {
		if err := banks[0].set(ctx, account, opening); err != nil {
			return err
		}
	}
	if err := transfers(ctx, banks, accounts, out); err != nil {
		return err
	}
	return allOrNothing(ctx, banks[0], banks[1], out)
}

// transfers has clerks in both processes move money between all accounts, in all
// directions at the same time. Locks that are taken one after another as they are named
// would soon wait for each other.
func transfers(ctx context.Context, banks [2]*bank, accounts []string, out io.Writer) error {
	began, clerks := time.Now(), 0
	var all sync.WaitGroup
	wrong := make(chan error, 100)
	for _, b := range banks {
		for i, from := range accounts {
			for _, to := range []string{accounts[(i+1)%3], accounts[(i+2)%3]} {
				clerks++
				all.Go(func() {
					for range each {
						if err := b.transfer(ctx, from, to, 1); err != nil {
							wrong <- err
							return
						}
					}
				})
			}
		}
	}
	all.Wait()
	close(wrong)
	if err := <-wrong; err != nil {
		return err
	}
	sum := 0
	for _, account := range accounts {
		n, err := banks[0].get(ctx, account)
		if err != nil {
			return err
		}
		sum += n
	}
	fmt.Fprintf(out, "%d clerks in 2 processes have made %d transfers in %v\n", clerks, clerks*each, time.Since(began).Round(time.Millisecond))
	fmt.Fprintf(out, "there were %d on all accounts, and there are %d\n", opening*len(accounts), sum)
	if sum != opening*len(accounts) {
		return errors.New("money was lost, or made")
	}
	return nil
}

// allOrNothing: while one of its locks is held by somebody else, a MultiLock keeps nobody
// out of the others.
func allOrNothing(ctx context.Context, here, there *bank, out io.Writer) error {
	bert, err := there.locks.FencedLock("bert").Acquire(ctx)
	if err != nil {
		return err
	}
	moved := make(chan error, 1)
	go func() { moved <- here.transfer(ctx, "anna", "bert", 50) }()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		status, err := there.locks.FencedLock("bert").Inspect(ctx)
		if err != nil {
			return err
		}
		waits = status.Subscribers > 0
	}
	anna, err := there.locks.FencedLock("anna").Acquire(ctx, lockkeeper.WithWait(patience/4))
	if err != nil {
		return fmt.Errorf("anna's account is not free: %w", err)
	}
	fmt.Fprintln(out, "a transfer from anna to bert waits for bert's account; anna's is free meanwhile")
	if err := errors.Join(anna.Release(ctx), bert.Release(ctx), <-moved); err != nil {
		return err
	}
	fmt.Fprintln(out, "then it is made")
	return nil
}

// bank is a process that moves money.
type bank struct {
	redis rueidis.Client
	locks *lockkeeper.System
}

// transfer moves money under the locks of both accounts.
func (b *bank) transfer(ctx context.Context, from, to string, amount int) (err error) {
	both := lockkeeper.MultiLock(b.locks.FencedLock(from), b.locks.FencedLock(to))
	hold, err := both.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(context.WithoutCancel(ctx))) }()
	ctx = hold.Context() // cancelled when either lock is lost
	// Each account has a token of its own, for a guard such as that of examples/fenced.
	if tokens := hold.MemberTokens(); tokens[0] <= 0 || tokens[1] <= 0 {
		return fmt.Errorf("the tokens are %v", tokens)
	}
	had, err := b.get(ctx, from)
	if err != nil {
		return err
	}
	has, err := b.get(ctx, to)
	if err != nil {
		return err
	}
	if err := b.set(ctx, from, had-amount); err != nil {
		return err
	}
	return b.set(ctx, to, has+amount)
}

func balance(account string) string { return prefix + "balance:" + account }

func (b *bank) get(ctx context.Context, account string) (int, error) {
	n, err := b.redis.Do(ctx, b.redis.B().Get().Key(balance(account)).Build()).AsInt64()
	return int(n), err
}

func (b *bank) set(ctx context.Context, account string, amount int) error {
	return b.redis.Do(ctx, b.redis.B().Set().Key(balance(account)).Value(strconv.Itoa(amount)).Build()).Error()
}
