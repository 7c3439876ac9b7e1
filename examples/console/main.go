// Console shows the web page of a service's locks, among the service's own pages.
//
//	go run ./examples/console -http localhost:8080
//
// Without -http the program reads its own page, and ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

func main() {
	address := flag.String("http", "", "`address` to serve at, until interrupted")
	client, stop := demo.Redis()
	defer stop()

	// The service: its journal records losses, and the console is one of its pages.
	journal := console.NewJournal()
	shop, stop := demo.Process(client, journal.Attach(lockkeeper.Config{Application: "shop"}))
	defer stop()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", console.Handler(shop, console.WithJournal(journal), console.WithForceRelease())))

	// Another process that uses the same locks.
	billing, stop := demo.Process(client, lockkeeper.Config{Application: "billing"})
	defer stop()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	trade(ctx, shop, billing)

	listener, err := net.Listen("tcp", *address)
	demo.Check(err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			demo.Check(err)
		}
	}()
	defer server.Close()
	page := fmt.Sprintf("http://%s/locks/", listener.Addr())
	if *address != "" {
		fmt.Println("open", page)
		<-ctx.Done()
		return
	}
	printLocks(page)
}

// trade acquires some locks, loses one of them, and waits for others.
func trade(ctx context.Context, shop, billing *lockkeeper.System) {
	hold := func(lock *lockkeeper.Lock) *lockkeeper.Hold {
		hold, err := lock.Acquire(ctx)
		demo.Check(err)
		return hold
	}
	for _, parcel := range []string{"1001", "1002", "1003"} {
		hold(shop.FencedLock("parcel:" + parcel))
	}
	lost := hold(shop.Lock("price-list"))
	_, err := shop.Lock("price-list").ForceRelease(ctx)
	demo.Check(err)
	<-lost.Context().Done()
	hold(shop.ReadWriteLock("catalogue").Read())
	hold(billing.Lock("invoices"))
	hold(billing.FairLock("printer"))
	for _, waited := range []*lockkeeper.Lock{shop.Lock("invoices"), shop.Lock("invoices"), shop.FairLock("printer")} {
		go func() { _, _ = waited.Acquire(ctx) }() // until the end of the program
	}
}

// printLocks reads the page's data, as a script would.
func printLocks(page string) {
	type held struct {
		Name    string
		Waiters int
		Process struct{ Application string }
	}
	var all struct {
		Locks  []held
		Events []struct{ Lock, Text string }
	}
	for waiting := 0; waiting < 3; {
		response, err := http.Get(page + "data.json")
		demo.Check(err)
		demo.Check(json.NewDecoder(response.Body).Decode(&all))
		demo.Check(response.Body.Close())
		waiting = 0
		for _, l := range all.Locks {
			waiting += l.Waiters
		}
	}
	slices.SortFunc(all.Locks, func(a, b held) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range all.Locks {
		fmt.Printf("%s: held by %s, waited for by %d\n", l.Name, l.Process.Application, l.Waiters)
	}
	for _, e := range all.Events {
		fmt.Printf("%s: %s\n", e.Lock, e.Text)
	}
}
