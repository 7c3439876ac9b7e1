// Transfer shows a MultiLock: money moves between two accounts under the locks of both. A MultiLock acquires all of its
// locks or none, so transfers in opposite directions cannot deadlock.
//
//	go run ./examples/transfer
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// bank is a process that moves money.
type bank struct {
	locks *lockkeeper.System
	redis rueidis.Client // stores the balances
}

// transfer moves an amount from one account to another.
func (b *bank) transfer(ctx context.Context, from, to string, amount int64) error {
	both := lockkeeper.MultiLock(b.locks.Lock("account:"+from), b.locks.Lock("account:"+to))
	return both.Do(ctx, func(ctx context.Context) error { // cancelled when either lock is lost
		had, err := b.balance(ctx, from)
		if err != nil {
			return err
		}
		has, err := b.balance(ctx, to)
		if err != nil {
			return err
		}
		if had < amount {
			return fmt.Errorf("%s has %d, which is less than %d", from, had, amount)
		}
		return errors.Join(b.set(ctx, from, had-amount), b.set(ctx, to, has+amount))
	})
}

func (b *bank) balance(ctx context.Context, account string) (int64, error) {
	return b.redis.Do(ctx, b.redis.B().Get().Key("balance:"+account).Build()).AsInt64()
}

func (b *bank) set(ctx context.Context, account string, amount int64) error {
	return b.redis.Do(ctx, b.redis.B().Set().Key("balance:"+account).Value(strconv.FormatInt(amount, 10)).Build()).Error()
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	var banks []*bank
	for range 2 {
		locks, stop := demo.Process(client, lockkeeper.Config{})
		defer stop()
		banks = append(banks, &bank{locks: locks, redis: client})
	}
	ctx := context.Background()
	accounts := []string{"anna", "bert", "carl"}
	for _, account := range accounts {
		demo.Check(banks[0].set(ctx, account, 1000))
	}

	// In both processes, between all accounts, and in all directions at the same time.
	var all sync.WaitGroup
	for _, b := range banks {
		for i, from := range accounts {
			for _, to := range []string{accounts[(i+1)%3], accounts[(i+2)%3]} {
				all.Go(func() {
					for range 10 {
						demo.Check(b.transfer(ctx, from, to, int64(i+1)))
					}
				})
			}
		}
	}
	all.Wait()

	var sum int64
	for _, account := range accounts {
		amount, err := banks[0].balance(ctx, account)
		demo.Check(err)
		fmt.Println(account, "has", amount)
		sum += amount
	}
	fmt.Println("after 120 transfers there are", sum, "of 3000 on the accounts")
	fmt.Println("a transfer of 5000:", banks[1].transfer(ctx, "anna", "bert", 5000))
}
