package rig

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Slots is the number of slots of a Redis Cluster.
const Slots = 16384

// StartCluster starts a Redis Cluster of masters without replicas, which share the slots evenly
// and in their order, and waits until it is up.
func StartCluster(masters int, o Options) (all []*Server, err error) {
	o.Args = append([]string{"--cluster-enabled", "yes"}, o.Args...)
	for len(all) < masters && err == nil {
		var s *Server
		if s, err = Start(o); err == nil {
			all = append(all, s)
		}
	}
	if err == nil {
		err = FormCluster(all)
	}
	if err != nil {
		StopAll(all)
		return nil, err
	}
	return all, nil
}

// StopAll stops servers.
func StopAll(all []*Server) {
	for _, s := range all {
		s.Stop()
	}
}

// FormCluster makes a cluster of masters, as StartCluster does.
func FormCluster(masters []*Server) error {
	for i, s := range masters {
		first, last := i*Slots/len(masters), (i+1)*Slots/len(masters)-1
		for _, command := range [][]string{
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)},
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
		} {
			if err := s.ok(command...); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := s.meet(masters[0]); err != nil {
				return err
			}
		}
	}
	return AwaitCluster(masters)
}

// AwaitCluster waits until the servers know each other, and the cluster is up.
func AwaitCluster(all []*Server) error {
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(all))
	for _, s := range all {
		if err := Await("the cluster is up", func() bool {
			info, err := s.Do("CLUSTER", "INFO")
			return err == nil && strings.Contains(info.Str, "cluster_state:ok") && strings.Contains(info.Str, known)
		}); err != nil {
			return err
		}
	}
	return nil
}

// Join adds a server without slots to a cluster, and waits until all servers know it.
func (s *Server) Join(members []*Server) error {
	if err := s.meet(members[0]); err != nil {
		return err
	}
	return AwaitCluster(append(slices.Clone(members), s))
}

// Replicate makes a server of a cluster the replica of a master, as soon as it knows that.
func (s *Server) Replicate(master *Server) error {
	id, err := master.NodeID()
	if err != nil {
		return err
	}
	return Await("a server follows a master", func() bool { return s.ok("CLUSTER", "REPLICATE", id) == nil })
}

// NodeID is the server's ID in its cluster.
func (s *Server) NodeID() (string, error) {
	id, err := s.Do("CLUSTER", "MYID")
	return id.Str, err
}

func (s *Server) meet(other *Server) error {
	host, port, _ := net.SplitHostPort(other.Addr())
	return s.ok("CLUSTER", "MEET", host, port, other.bus())
}

// bus is the port of its cluster bus.
func (s *Server) bus() string { return strconv.Itoa(s.port + 10000) }

// ok runs a command, and names it in the error.
func (s *Server) ok(args ...string) error {
	if _, err := s.Do(args...); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// BeginMove leaves a slot between two servers: its keys are still here, and new ones go to the other.
func (s *Server) BeginMove(slot int, to *Server) error {
	id, err := s.NodeID()
	if err == nil {
		err = to.ok("CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", id)
	}
	if err != nil {
		return err
	}
	if id, err = to.NodeID(); err != nil {
		return err
	}
	return s.ok("CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", id)
}

// MigrateKeys moves keys of a slot, or all of them if none is named. It fails if the other
// server has a key of that name.
func (s *Server) MigrateKeys(slot int, to *Server, keys ...string) error {
	if len(keys) == 0 {
		all, err := s.Do("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), "100")
		if err != nil {
			return err
		}
		keys = all.Words()
	}
	for _, key := range keys {
		if err := s.ok("MIGRATE", Host, to.Port(), key, "0", "5000"); err != nil {
			return err
		}
	}
	return nil
}

// EndMove makes the other server the owner of the slot.
func (s *Server) EndMove(slot int, to *Server) error {
	id, err := to.NodeID()
	if err != nil {
		return err
	}
	for _, each := range []*Server{to, s} {
		if err := each.ok("CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id); err != nil {
			return err
		}
	}
	return nil
}

// Leave removes a server without slots from its cluster; the server keeps running. How is SOFT or HARD; after the latter
// it has another ID.
func (s *Server) Leave(how string, others ...*Server) error {
	if err := s.Forgotten(others...); err != nil {
		return err
	}
	return s.ok("CLUSTER", "RESET", how)
}

// Forgotten removes a server from the cluster of the others, but does not tell it.
func (s *Server) Forgotten(others ...*Server) error {
	id, err := s.NodeID()
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := other.ok("CLUSTER", "FORGET", id); err != nil {
			return err
		}
	}
	return nil
}
