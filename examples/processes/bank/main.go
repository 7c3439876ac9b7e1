// Bank shows grains: accounts, each of which exists at most once in several processes. They take deposits. One process is
// stopped, and its accounts move to others; another one is killed, and they move again.
//
//	go run -C examples/bank .
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/redis/rueidis"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/grains"
)

func main() {
	log.SetFlags(0)
	url := flag.String("redis", "", "`URL` of a Redis; without it, there is one inside this program")
	branch := flag.Bool("branch", false, "run a process that has accounts")
	flag.Parse()
	switch {
	case *branch:
		check(runBranch(*url))
	default:
		if *url == "" {
			server := miniredis.NewMiniRedis()
			server.ClockTTL(true) // leases end by themselves
			check(server.Start())
			defer server.Close()
			*url = "redis://" + server.Addr() + "?protocol=2"
		}
		check(tour(*url))
	}
}

// node returns a node of the cluster that is not started.
func node(url string) (bank *cluster.Cluster, leave func() error, err error) {
	client, err := lockkeeper.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	// The accounts of a killed process are missed for as long as Watchdog, so that is short here.
	directory, err := grains.New(client, grains.Config{Locks: lockkeeper.Config{Watchdog: 2 * time.Second}})
	if err != nil {
		return nil, nil, err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	account := cluster.NewKind("account", actor.PropsFromProducer(func() actor.Actor { return &account{store: client} }))
	bank = cluster.New(system, cluster.Configure("bank", directory.Provider(), directory.Lookup(), remote.Configure("127.0.0.1", 0), cluster.WithKinds(account)))
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

// runBranch runs a process that has accounts, until it gets SIGTERM, or the process that has started it ends.
func runBranch(url string) error {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
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
	north, err := start(url)
	if err != nil {
		return err
	}
	defer north.end()
	south, err := start(url)
	if err != nil {
		return err
	}
	defer south.end()
	bank, leave, err := node(url)
	if err != nil {
		return err
	}
	bank.StartClient()
	defer func() { check(leave()) }()
	pay := func(day string) {
		for _, account := range []string{"1001", "1002", "1003"} {
			for {
				balance, err := bank.Request(account, "account", wrapperspb.String(day+" 10"))
				if err == nil {
					fmt.Println("account", account, "has", balance.(*wrapperspb.StringValue).Value)
					break
				} // the deposit may be made or not: it is made once
			}
		}
	}

	pay("monday")
	fmt.Println("north is stopped")
	check(north.end())
	pay("tuesday")
	west, err := start(url)
	if err != nil {
		return err
	}
	defer west.end()
	fmt.Println("south is killed")
	check(south.Process.Kill())
	pay("wednesday")
	return nil
}

// process is a branch's.
type process struct{ *exec.Cmd }

// start starts a process, and waits until it is open.
func start(url string) (*process, error) {
	p := &process{Cmd: exec.Command(os.Args[0], "-redis", url, "-branch")}
	p.Stderr = os.Stderr
	if _, err := p.StdinPipe(); err != nil { // which ends with this process
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	_, err = out.Read(make([]byte, 5))
	return p, err
}

// end ends a process in good order.
func (p *process) end() error {
	if p.ProcessState != nil {
		return nil // it has ended
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil && p.ProcessState.ExitCode() >= 0 {
		return err
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
