// Bank shows grains: accounts that take deposits. Each account exists at most once in several processes. One process is
// stopped, and its accounts move to other processes; another process is killed, and its accounts move again.
//
//	go run -C examples/processes/bank .
package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/processes/internal/process"
	"github.com/lockkeeper-go/lockkeeper/grains"
)

func main() { process.Main(tour, branch) }

// node returns a node of the cluster that is not started.
func node(url string) (bank *cluster.Cluster, leave func() error, err error) {
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	// The accounts of a killed process are missing for as long as Watchdog, so Watchdog is short here.
	directory, err := grains.New(client, grains.Config{Locks: lockkeeper.Config{Watchdog: 2 * time.Second}})
	if err != nil {
		return nil, nil, err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	account := cluster.NewKind("account", actor.PropsFromProducer(func() actor.Actor { return &account{store: client} }))
	network := remote.Configure("127.0.0.1", 0, remote.WithServerOptions(grains.ServerOption(system)))
	bank = cluster.New(system, cluster.Configure("bank", directory.Provider(), directory.Lookup(), network, cluster.WithKinds(account)))
	return bank, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := directory.Leave(ctx)
		client.Close()
		bank.Remote.Shutdown(false)
		return err
	}, nil
}

// account is the grain of one account.
type account struct{ store rueidis.Client }

// deposit refuses an older activation, and takes each deposit once: a request that has failed may be sent again.
var deposit = rueidis.NewLuaScript(`
if tonumber(redis.call('HGET', KEYS[1], 'token') or 0) > tonumber(ARGV[1]) then
  return redis.error_reply('a newer activation has the account')
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
if redis.call('HSETNX', KEYS[1], 'deposit ' .. ARGV[2], '1') == 1 then
  redis.call('HINCRBY', KEYS[1], 'balance', ARGV[3])
end
return redis.call('HGET', KEYS[1], 'balance')`)

func (a *account) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*wrapperspb.StringValue)
	if !ok {
		return
	}
	id, amount, _ := strings.Cut(m.Value, " ")
	term := grains.TermOf(ctx)
	key := "account:" + cluster.GetClusterIdentity(ctx).Identity
	balance, err := deposit.Exec(term.Context(), a.store, []string{key}, []string{fmt.Sprint(term.Token()), id, amount}).ToString()
	if err == nil {
		ctx.Respond(wrapperspb.String(balance))
	}
}

// branch is a process that has accounts, until it is terminated.
func branch(terminated context.Context, url, _ string) error {
	bank, leave, err := node(url)
	if err != nil {
		return err
	}
	bank.StartMember()
	fmt.Println("open")
	<-terminated.Done()
	return leave() // the accounts have stopped then, and start elsewhere
}

// tour starts the other processes, and pays into accounts, wherever they are.
func tour(url string) error {
	north, err := process.Start(url, "north")
	if err != nil {
		return err
	}
	defer north.End()
	south, err := process.Start(url, "south")
	if err != nil {
		return err
	}
	defer south.End()
	bank, leave, err := node(url)
	if err != nil {
		return err
	}
	bank.StartClient()
	defer func() { process.Check(leave()) }()
	pay := func(day string) {
		for _, account := range []string{"1001", "1002", "1003"} {
			for {
				balance, err := bank.Request(account, "account", wrapperspb.String(day+" 10"))
				if err == nil {
					fmt.Println("account", account, "has", balance.(*wrapperspb.StringValue).Value)
					break
				} // the deposit may be made or not: a repeated request makes it once
			}
		}
	}

	pay("monday")
	fmt.Println("north is stopped")
	process.Check(north.End())
	pay("tuesday")
	west, err := process.Start(url, "west")
	if err != nil {
		return err
	}
	defer west.End()
	fmt.Println("south is killed")
	process.Check(south.Process.Kill())
	pay("wednesday")
	return nil
}
