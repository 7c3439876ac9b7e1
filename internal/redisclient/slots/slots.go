// Package slots finds the masters of a cluster's slots.
package slots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Timeout bounds the wait for the reply of one server to CLUSTER SLOTS.
const Timeout = time.Second

// Map contains the addresses of a cluster's masters, by their slots. The first range with a slot is used.
type Map []slotRange

type slotRange struct {
	first, last uint16
	address     string
}

// Of returns the master of a slot, or "" if it is not known.
func (m Map) Of(slot uint16) string {
	for _, r := range m {
		if r.first <= slot && slot <= r.last {
			return r.address
		}
	}
	return ""
}

// With returns the masters with another address for a slot.
func (m Map) With(slot uint16, address string) Map {
	rest := slices.DeleteFunc(slices.Clone(m), func(r slotRange) bool { return r.first == slot && r.last == slot })
	return slices.Insert(rest, 0, slotRange{slot, slot, address})
}

// Has reports whether a server is the master of any slot.
func (m Map) Has(address string) bool {
	return slices.ContainsFunc(m, func(r slotRange) bool { return r.address == address })
}

var errMissing = &redisio.Error{Err: errors.New("the context or the client is nil")}

// Masters returns the clients of the masters by their addresses: the masters of a cluster that have slots, or the
// only server. (rueidis's Nodes does not distinguish masters and replicas.) With an error, which is a *redisio.Error,
// it also returns the masters that it has found.
func Masters(ctx context.Context, client rueidis.Client) (map[string]rueidis.Client, error) {
	if ctx == nil || client == nil {
		return nil, errMissing
	}
	nodes := client.Nodes()
	if client.Mode() != rueidis.ClientModeCluster {
		return nodes, nil
	}
	ranges := Locate(ctx, client, slices.Sorted(maps.Keys(nodes)))
	if ranges == nil {
		return nil, &redisio.Error{Transient: true, Err: errors.New("no server of the cluster names its masters")}
	}
	maps.DeleteFunc(nodes, func(address string, _ rueidis.Client) bool { return !ranges.Has(address) })
	var unknown []string
	for _, r := range ranges {
		if nodes[r.address] == nil {
			unknown = append(unknown, fmt.Sprintf(
				"the client does not know the master %s of the slots %d to %d: it is down, or new",
				r.address, r.first, r.last))
		}
	}
	if unknown != nil {
		return nodes, &redisio.Error{Transient: true, Err: errors.New(strings.Join(unknown, "; "))}
	}
	return nodes, nil
}

// Locate asks the servers that the client knows in turn, until a server returns the masters. It returns nil if no
// server does.
func Locate(ctx context.Context, client rueidis.Client, addresses []string) Map {
	nodes := client.Nodes()
	for _, address := range addresses {
		node, known := nodes[address]
		if !known || ctx.Err() != nil {
			continue
		}
		delete(nodes, address) // each server is asked once
		within, cancel := context.WithTimeout(ctx, Timeout)
		ranges, _ := node.Do(within, node.B().ClusterSlots().Build()).ToArray()
		cancel()
		var found Map
		for i := range ranges {
			if r, ok := readRange(&ranges[i], address); ok {
				found = append(found, r)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// readRange reads an element of the reply to CLUSTER SLOTS: first, last, the master, and its replicas.
func readRange(m *rueidis.RedisMessage, from string) (r slotRange, ok bool) {
	parts, _ := m.ToArray()
	if len(parts) < 3 {
		return r, false
	}
	first, noFirst := parts[0].AsInt64()
	last, noLast := parts[1].AsInt64()
	master := readAddress(&parts[2], from)
	if noFirst != nil || noLast != nil || master == "" || first < 0 || last > 16383 {
		return r, false
	}
	return slotRange{uint16(first), uint16(last), master}, true
}

// readAddress reads a server in the reply to CLUSTER SLOTS: [host, port, …]. The host is empty if a server does not
// know its own host: then it is the host of the server that was asked, from. readAddress returns "" for an unknown
// host.
func readAddress(m *rueidis.RedisMessage, from string) string {
	server, _ := m.ToArray()
	if len(server) < 2 {
		return ""
	}
	port, noPort := server[1].AsInt64()
	host, _ := server[0].ToString()
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	if noPort != nil || host == "?" {
		return ""
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

// Members returns the masters that have slots, and their replicas, that a server knows.
func Members(ctx context.Context, server rueidis.Client, address string) (members []string, err error) {
	ranges, err := server.Do(ctx, server.B().ClusterSlots().Build()).ToArray()
	for _, each := range ranges {
		parts, _ := each.ToArray()
		for i := 2; i < len(parts); i++ {
			members = append(members, readAddress(&parts[i], address))
		}
	}
	return members, err
}
