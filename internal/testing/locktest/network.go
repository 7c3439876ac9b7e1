package locktest

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
)

// Network connects actor systems by their addresses. It replaces proto.actor's remote, which would bring gRPC into this
// module, and behaves in the same way.
type Network struct {
	mu    sync.Mutex
	nodes map[string]*actor.ActorSystem
	// watches are pairs of watcher and watched actor on different nodes.
	watches [][2]*actor.PID
	// Lose, if it is set, reports whether a message to a process is lost.
	Lose func(to *actor.PID, message any) bool
}

// Node is a new actor system at an address, whose actors request locks from a site.
func (n *Network) Node(s *Site, address string) *Site {
	system := quiet.ActorSystem()
	n.Join(system, address)
	return &Site{System: s.System, Actors: system}
}

// Join gives an actor system an address, and replaces the previous one there.
func (n *Network) Join(system *actor.ActorSystem, address string) {
	system.ProcessRegistry.Address = address
	system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return link{n}, true })
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes == nil {
		n.nodes = map[string]*actor.ActorSystem{}
	}
	n.nodes[address] = system
}

// target is a process behind an address, if the node is there.
func (n *Network) target(pid *actor.PID) (actor.Process, *actor.PID, bool) {
	n.mu.Lock()
	system := n.nodes[pid.GetAddress()]
	n.mu.Unlock()
	if system == nil {
		return nil, nil, false
	}
	there := proto.Clone(pid).(*actor.PID)
	process, _ := system.ProcessRegistry.Get(there)
	return process, there, true
}

// Cut breaks all connections for a moment, and notifies watchers as remote does.
func (n *Network) Cut() {
	n.mu.Lock()
	watches := n.watches
	n.watches = nil
	n.mu.Unlock()
	for _, w := range watches {
		if process, there, ok := n.target(w[0]); ok {
			process.SendSystemMessage(there, &actor.Terminated{Who: w[1], Why: actor.TerminatedReason_AddressTerminated})
		}
	}
}

// link is a process on another node, as seen from here.
type link struct{ *Network }

// SendUserMessage implements actor.Process.
func (l link) SendUserMessage(pid *actor.PID, m any) {
	header, m, sender := actor.UnwrapEnvelope(m)
	process, there, ok := l.target(pid)
	if message, is := m.(proto.Message); ok && is && (l.Lose == nil || !l.Lose(pid, m)) {
		envelope := request.Envelope(proto.Clone(message), nil, header)
		if sender != nil {
			envelope.Sender = proto.Clone(sender).(*actor.PID)
		}
		process.SendUserMessage(there, envelope)
	}
}

// SendSystemMessage implements actor.Process.
func (l link) SendSystemMessage(pid *actor.PID, m any) {
	if watch, ok := m.(*actor.Watch); ok {
		l.mu.Lock()
		l.watches = append(l.watches, [2]*actor.PID{watch.Watcher, pid})
		l.mu.Unlock()
	}
	if process, there, ok := l.target(pid); ok {
		process.SendSystemMessage(there, m)
	}
}

// Stop implements actor.Process.
func (l link) Stop(*actor.PID) {}
