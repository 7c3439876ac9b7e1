package pubsub

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// checkPause is the pause between two checks whether the client knows other servers than before.
const checkPause = time.Second

// Shards keeps shard channels subscribed in a cluster with sharded pub/sub: each on the master of its
// slot, over one connection to each master. A channel follows its slot to another master. The Listener
// receives Message without a payload when the slot has moved away, and Subscribed when the channel is
// subscribed on the new master: messages may have been missed before either call.
type Shards struct {
	client   rueidis.Client
	listener Listener
	// reconnected is called for each connection that replaces a broken connection.
	reconnected func()

	mu sync.Mutex // guards the fields below
	// on contains the shard of each wanted channel; nil if settle must find the shard.
	on map[string]*shard
	// refused are channels to which Redis does not allow this client to subscribe.
	refused map[string]struct{}
	shards  map[string]*shard // by address
	masters slots.Map
	// unsettled reports that channels may be on the wrong master.
	unsettled bool
	// askFirst is the address of the server to ask first.
	askFirst string
	nodes    []string
	started  bool

	changed chan struct{}
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	done    chan struct{}
	others  sync.WaitGroup // goroutines that close shards
}

// shard is one master with the subscriptions there.
type shard struct {
	*Subscriptions
	of      *Shards
	address string
}

// NewShards returns Shards without connections. The function reconnected is called for each connection that replaces a
// broken connection.
func NewShards(client rueidis.Client, listener Listener, reconnected func()) *Shards {
	s := &Shards{
		client: client, listener: listener, reconnected: reconnected,
		on: map[string]*shard{}, refused: map[string]struct{}{}, shards: map[string]*shard{},
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Add subscribes to channels of one slot, in that order; see Subscriptions.Add.
func (s *Shards) Add(channels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	if !s.started {
		s.started = true
		go s.run()
	}
	at := s.at(channels[0])
	for _, channel := range channels {
		if was := s.on[channel]; was != nil && was != at { // its slot has moved since
			was.Remove(channel)
		}
		s.on[channel] = at
		delete(s.refused, channel)
	}
	if at == nil {
		s.wake()
		return
	}
	at.Add(channels...)
}

// Remove unsubscribes from channels and returns at once; see Subscriptions.Remove.
func (s *Shards) Remove(channels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		if at := s.on[channel]; at != nil {
			at.Remove(channel)
		}
		delete(s.on, channel)
		delete(s.refused, channel)
	}
}

// Confirmed reports whether the known master of the channel's slot has confirmed the subscription, on a
// connection that is not known to be broken.
func (s *Shards) Confirmed(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.shards[s.masters.Of(keyspace.Slot(channel))]
	return at != nil && at.Confirmed(channel)
}

// Close closes the connections; see Subscriptions.Close.
func (s *Shards) Close() {
	s.mu.Lock()
	s.close()
	if !s.started {
		s.started = true
		close(s.done)
	}
	for _, at := range s.shards {
		s.others.Go(at.Close)
	}
	clear(s.shards)
	s.mu.Unlock()
	<-s.done
	s.others.Wait()
}

// at returns the shard of a channel, which it creates if needed; nil if the master is not known. mu is held.
func (s *Shards) at(channel string) *shard {
	address := s.masters.Of(keyspace.Slot(channel))
	if address == "" || s.ctx.Err() != nil {
		return nil
	}
	if s.shards[address] == nil {
		at := &shard{newSubscriptions(nil, s.reconnected), s, address}
		at.listener, at.shard = at, at
		at.dedicate = at.connect
		s.shards[address] = at
	}
	return s.shards[address]
}

// connect implements Subscriptions.dedicate: the connection leads to the shard's server. If the client does not know
// the server, connect makes the client discover it, and the next attempt may succeed.
func (at *shard) connect(_, _ string) *conn {
	client := at.of.client
	if node := client.Nodes()[at.address]; node != nil {
		return newConn(node, at.address)
	}
	if channels := at.channels(); len(channels) > 0 {
		ctx, cancel := context.WithTimeout(at.ctx, slots.Timeout)
		defer cancel()
		for _, key := range keyspace.KeysOf(channels[0]) {
			if err := redisio.Classify(slots.Discover(ctx, client, key).Error()); err == nil || err.Transient {
				break // the user may use this key
			}
		}
	}
	return nil
}

// wake makes the goroutine find the masters of the channels; mu is held.
func (s *Shards) wake() {
	s.unsettled = true
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Message implements Listener.
func (at *shard) Message(channel, payload string) { at.of.listener.Message(channel, payload) }

// Subscribed implements Listener.
func (at *shard) Subscribed(channel string) { at.of.listener.Subscribed(channel) }

// Refused implements Listener.
func (at *shard) Refused(channels []string, err *redisio.Error) {
	at.of.mu.Lock()
	for _, channel := range channels {
		at.of.refused[channel] = struct{}{}
	}
	at.of.mu.Unlock()
	at.of.listener.Refused(channels, err)
}

// Failing implements Listener.
func (at *shard) Failing(command, server string, err *redisio.Error) {
	at.of.listener.Failing(command, server, err)
}

// Recovered implements Listener.
func (at *shard) Recovered(command, server string) { at.of.listener.Recovered(command, server) }

// noteDisconnected records that the shard has no connection.
func (at *shard) noteDisconnected() {
	at.of.mu.Lock()
	defer at.of.mu.Unlock()
	at.of.wake()
}

// noteSlotsMoved records that the slots of channels have moved from this shard to another master, "" if the master is
// not known.
func (at *shard) noteSlotsMoved(channels []string, master string) {
	s := at.of
	var lost []string
	s.mu.Lock()
	for _, channel := range channels {
		if s.masters.Of(keyspace.Slot(channel)) == at.address {
			s.masters = s.masters.With(keyspace.Slot(channel), master)
		}
		if s.on[channel] == at {
			s.on[channel] = nil
			lost = append(lost, channel)
		}
	}
	s.askFirst = at.address
	s.wake()
	s.mu.Unlock()
	at.Remove(lost...)
	for _, channel := range lost {
		s.listener.Message(channel, "")
	}
}

// run calls settle until all channels are on the right masters, after each change and every checkPause.
func (s *Shards) run() {
	defer close(s.done)
	for pause := time.Duration(0); ; {
		wait, changed := checkPause, s.changed
		if s.settle() {
			pause = 0
		} else { // further events may belong to the same change, so they do not shorten the pause
			pause = min(max(2*pause, minReconnectPause), maxReconnectPause)
			wait, changed = pause/2+rand.N(pause/2), nil
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-s.ctx.Done():
			return
		}
	}
}

// settle moves channels to the masters of their slots, and reports whether all channels were there before, and
// confirmed.
func (s *Shards) settle() bool {
	nodes := slices.Sorted(maps.Keys(s.client.Nodes()))
	s.mu.Lock()
	known := slices.Equal(nodes, s.nodes)
	s.nodes = nodes
	lost, placed := s.assign()
	if known && lost+placed == 0 && (!s.unsettled || s.allConfirmed()) {
		s.unsettled, s.askFirst = false, ""
		s.mu.Unlock()
		return true
	}
	asked := slices.Concat([]string{s.askFirst}, slices.Sorted(maps.Keys(s.shards)), nodes)
	s.unsettled = true
	s.mu.Unlock()
	if known && lost == 0 && placed > 0 {
		return false // the new subscriptions are not confirmed yet
	}
	if found := slots.Locate(s.ctx, s.client, asked); found != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.masters = found
		s.assign()
		s.closeUnused()
	}
	return false
}

// assign moves channels to the masters of their slots. It returns the number of channels without a known master, and
// the number of channels that have moved; mu is held.
func (s *Shards) assign() (lost, moved int) {
	more := map[*shard][]string{}
	for channel, was := range s.on {
		switch at := s.at(channel); {
		case at == nil:
			lost++
		case at != was:
			if was != nil {
				was.Remove(channel)
			}
			s.on[channel] = at
			more[at] = append(more[at], channel)
			moved++
		}
	}
	for at, channels := range more {
		slices.Sort(channels) // the order of Subscriptions.wanted
		at.Add(channels...)
	}
	return lost, moved
}

// allConfirmed reports whether Redis has confirmed or refused all channels; mu is held.
func (s *Shards) allConfirmed() bool {
	for channel, at := range s.on {
		if _, refused := s.refused[channel]; !refused && !at.Confirmed(channel) {
			return false
		}
	}
	return true
}

// closeUnused closes the shards that no longer have slots; mu is held.
func (s *Shards) closeUnused() {
	for address, at := range s.shards {
		if !s.masters.Has(address) {
			delete(s.shards, address)
			s.others.Go(at.Close)
		}
	}
}

// bySlot groups channels by their slots, in unchanged order.
func bySlot(channels []string) (groups [][]string) {
	at := map[uint16]int{}
	for _, channel := range channels {
		slot := keyspace.Slot(channel)
		i, known := at[slot]
		if !known {
			i = len(groups)
			at[slot], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], channel)
	}
	return groups
}
