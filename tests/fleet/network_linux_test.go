package fleet_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// way is a direction between two parties: workers with a name, and Redis with its Sentinels.
type way struct{ from, to string }

const redisParty = "redis"

// network carries the connections of workers with a name. A worker that dials it says who it is and which address it wants.
type network struct {
	net.Listener
	mu      sync.Mutex
	changed sync.Cond
	parties map[string]string // by their addresses
	holes   map[way]bool
	delays  map[way]time.Duration
	conns   map[net.Conn]way
}

func newNetwork(t *testing.T) *network {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{Listener: listener, parties: map[string]string{}, holes: map[way]bool{}, delays: map[way]time.Duration{}, conns: map[net.Conn]way{}}
	n.changed.L = &n.mu
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go n.serve(conn)
		}
	}()
	t.Cleanup(func() { _ = n.Close(); n.heal(); n.cut("") })
	return n
}

// dialer returns what a worker dials with.
func dialer(network, name string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", network)
		if err == nil {
			_, err = fmt.Fprintf(conn, "%s %s\n", name, address)
		}
		return conn, err
	}
}

// register says whose address it is.
func (n *network) register(address, party string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parties[address] = party
}

func (n *network) serve(from net.Conn) {
	reader := bufio.NewReader(from)
	line, err := reader.ReadString('\n')
	name, address, _ := strings.Cut(strings.TrimSpace(line), " ")
	var to net.Conn
	if err == nil {
		to, err = net.Dial("tcp", address)
	}
	if err != nil {
		_ = from.Close()
		return
	}
	n.mu.Lock()
	w := way{name, n.parties[address]}
	n.conns[from], n.conns[to] = w, w
	n.mu.Unlock()
	go n.forward(from, reader.Read, to, w)
	go n.forward(to, to.Read, from, way{w.to, w.from})
}

// forward copies what comes, and after that the end of the connection.
func (n *network) forward(from net.Conn, read func([]byte) (int, error), to net.Conn, w way) {
	buffer := make([]byte, 32<<10)
	for {
		count, err := read(buffer)
		n.mu.Lock()
		delay := n.delays[w]
		n.mu.Unlock()
		if delay > 0 {
			<-time.After(delay)
		}
		n.mu.Lock()
		for n.holes[w] {
			n.changed.Wait()
		}
		n.mu.Unlock()
		_, failed := to.Write(buffer[:count])
		if err != nil || failed != nil {
			_ = to.Close()
			_ = from.Close()
			n.mu.Lock()
			delete(n.conns, from)
			n.mu.Unlock()
			return
		}
	}
}

// swallow lets nothing pass on some ways until heal. It breaks no connection; what was sent meanwhile arrives after that.
func (n *network) swallow(ways ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range ways {
		n.holes[w] = true
	}
}

// delay makes what passes take longer until heal.
func (n *network) delay(by time.Duration, ways ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range ways {
		n.delays[w] = by
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.holes)
	clear(n.delays)
	n.changed.Broadcast()
}

// cut breaks the connections of a party, or all.
func (n *network) cut(party string) {
	n.mu.Lock()
	conns := maps.Clone(n.conns)
	n.mu.Unlock()
	for conn, w := range conns {
		if party == "" || w.from == party || w.to == party {
			_ = conn.Close()
		}
	}
}

// both returns the ways between two parties.
func both(a, b string) []way { return []way{{a, b}, {b, a}} }
