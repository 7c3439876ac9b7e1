package rig

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// StartReplica starts a replica of a master, which it reaches at an address, and waits until it is in sync and the
// master counts its acknowledgements.
func StartReplica(master *Server, addr string, o Options) (*Server, error) {
	o.Args = append([]string{"--replicaof", strings.Replace(addr, ":", " ", 1)}, o.Args...)
	s, err := Start(o)
	if err != nil {
		return nil, err
	}
	if err = s.AwaitReplication("master_link_status:up"); err == nil {
		err = master.AwaitReplication("port=" + s.Port() + ",state=online")
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// StartBehind starts a redis-server behind a proxy that delays the streams to its replicas by lag. All others connect to
// the proxy, whose address it announces; only the bus of a cluster passes it by.
func StartBehind(lag time.Duration, o Options) (*Server, error) {
	front, err := NewProxy("", ProxyOptions{})
	if err != nil {
		return nil, err
	}
	front.Set(func(r *Rules) { r.Stream.Delay = lag })
	_, announced, _ := net.SplitHostPort(front.Addr())
	s, err := start(o, func(port int) []string {
		return []string{
			"--replica-announce-ip", Host, "--replica-announce-port", announced,
			"--cluster-announce-ip", Host, "--cluster-announce-port", announced, "--cluster-announce-bus-port", strconv.Itoa(port + 10000),
		}
	})
	if err != nil {
		front.Close()
		return nil, err
	}
	front.Redirect(net.JoinHostPort(Host, strconv.Itoa(s.port)))
	s.front = front
	return s, nil
}

// Front is the proxy before the server; nil if there is none.
func (s *Server) Front() *Proxy { return s.front }

// Follow makes a server the replica of another, and waits until it is in sync.
func (s *Server) Follow(master *Server) error {
	if err := s.ok("REPLICAOF", Host, master.Port()); err != nil {
		return err
	}
	return s.AwaitReplication("master_link_status:up")
}

// Promote makes a replica a master.
func (s *Server) Promote() error {
	if err := s.ok("REPLICAOF", "NO", "ONE"); err != nil {
		return err
	}
	return s.AwaitReplication("role:master")
}

// Replication reports whether the server's INFO replication contains a text.
func (s *Server) Replication(text string) bool {
	info, err := s.Do("INFO", "replication")
	return err == nil && strings.Contains(info.Str, text)
}

// AwaitReplication waits until the server's INFO replication contains a text.
func (s *Server) AwaitReplication(text string) error {
	return Await(fmt.Sprintf("INFO replication of %s contains %s", s.Addr(), text), func() bool { return s.Replication(text) })
}
