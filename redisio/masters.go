package redisio

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
)

// locateTimeout bounds the wait for one server to say who has which slots.
const locateTimeout = time.Second

// masters are the addresses of the masters of a cluster, by their slots. Earlier ones overrule later
// ones.
type masters []slotRange

type slotRange struct {
	first, last uint16
	address     string
}

// of is the master of a slot, "" if it is not known.
func (m masters) of(slot uint16) string {
	for _, r := range m {
		if r.first <= slot && slot <= r.last {
			return r.address
		}
	}
	return ""
}

// with returns the masters, with that one for a slot.
func (m masters) with(slot uint16, address string) masters {
	rest := slices.DeleteFunc(slices.Clone(m), func(r slotRange) bool { return r.first == slot && r.last == slot })
	return slices.Insert(rest, 0, slotRange{slot, slot, address})
}

// have reports whether a server has any slots.
func (m masters) have(address string) bool {
	return slices.ContainsFunc(m, func(r slotRange) bool { return r.address == address })
}

// Masters are the clients of the servers that have the keys, by their addresses: the masters of a cluster with
// slots, or the only server. A cluster's client knows the replicas too, and does not tell them apart. It returns
// those that it has found also with an error, which is an *Error.
func Masters(ctx context.Context, client rueidis.Client) (map[string]rueidis.Client, error) {
	if ctx == nil || client == nil {
		return nil, errMissing
	}
	nodes := client.Nodes()
	if client.Mode() != rueidis.ClientModeCluster {
		return nodes, nil
	}
	ranges := locate(ctx, client, slices.Sorted(maps.Keys(nodes)))
	if ranges == nil {
		return nil, &Error{Transient: true, err: errors.New("no server of the cluster names its masters")}
	}
	maps.DeleteFunc(nodes, func(address string, _ rueidis.Client) bool { return !ranges.have(address) })
	var unknown []string
	for _, r := range ranges {
		if nodes[r.address] == nil {
			unknown = append(unknown, fmt.Sprintf("the client does not know the master %s of the slots %d to %d: it is down, or new", r.address, r.first, r.last))
		}
	}
	if unknown != nil {
		return nodes, &Error{Transient: true, err: errors.New(strings.Join(unknown, "; "))}
	}
	return nodes, nil
}

// locate asks servers in turn, of those that the client knows, until one knows the masters; nil if none
// does.
func locate(ctx context.Context, client rueidis.Client, addresses []string) masters {
	nodes := client.Nodes()
	for _, address := range addresses {
		node, known := nodes[address]
		if !known || ctx.Err() != nil {
			continue
		}
		delete(nodes, address) // it is asked once
		within, cancel := context.WithTimeout(ctx, locateTimeout)
		ranges, _ := node.Do(within, node.B().ClusterSlots().Build()).ToArray()
		cancel()
		var found masters
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

// readRange reads an element of the reply to CLUSTER SLOTS: first, last, [host, port, …] of the master,
// and its replicas. A server that does not know its own host leaves it out.
func readRange(m *rueidis.RedisMessage, from string) (r slotRange, ok bool) {
	parts, _ := m.ToArray()
	if len(parts) < 3 {
		return r, false
	}
	master, _ := parts[2].ToArray()
	if len(master) < 2 {
		return r, false
	}
	first, noFirst := parts[0].AsInt64()
	last, noLast := parts[1].AsInt64()
	port, noPort := master[1].AsInt64()
	host, _ := master[0].ToString()
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	if noFirst != nil || noLast != nil || noPort != nil || host == "?" || first < 0 || last > 16383 {
		return r, false
	}
	return slotRange{uint16(first), uint16(last), net.JoinHostPort(host, strconv.FormatInt(port, 10))}, true
}

// bySlot groups channels by their slots, and keeps the order of those in one slot.
func bySlot(channels []string) (groups [][]string) {
	at := map[uint16]int{}
	for _, channel := range channels {
		slot := Slot(channel)
		i, known := at[slot]
		if !known {
			i = len(groups)
			at[slot], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], channel)
	}
	return groups
}
