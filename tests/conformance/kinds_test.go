package conformance_test

import (
	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// conforming is a kind of lock as the suite tests it.
type conforming struct {
	// servers is how many it takes; each process has a System on each of them.
	servers int
	// home is on which of them the lock actor is.
	home int
	// once refuses re-entries.
	once bool
	// ordered is granted in the order of the requests over all processes.
	ordered bool
	// lock is the lock of a name; its System on the first server is called on.
	lock func(p *process, name string) *lockkeeper.Lock
	// message is the same lock by message; nil if messages cannot name it.
	message func(name string) *messages.Lock
	// keys, one of them per server and the last again for further servers, are what to
	// delete so that the lock is gone. Default: its name, on every server.
	keys func(name string) []string
}

func ofKind(kind messages.Kind) func(name string) *messages.Lock {
	return func(name string) *messages.Lock { return &messages.Lock{Name: name, Kind: kind} }
}

// mixed are the members of a MultiLock.
func mixed(name string) []*messages.Lock {
	return []*messages.Lock{
		{Name: name + "write", Kind: messages.Kind_KIND_READ_WRITE},
		{Name: name + "fenced", Kind: messages.Kind_KIND_FENCED},
		{Name: name + "plain"},
		{Name: name + "fair", Kind: messages.Kind_KIND_FAIR},
		{Name: name + "more", Kind: messages.Kind_KIND_FENCED},
	}
}

// multi spreads them over so many Systems.
func multi(p *process, name string, systems int) *lockkeeper.Lock {
	var locks []*lockkeeper.Lock
	for i, m := range mixed(name) {
		s := p.systems[i%systems]
		switch m.Kind {
		case messages.Kind_KIND_READ_WRITE:
			locks = append(locks, s.ReadWriteLock(m.Name).Write())
		case messages.Kind_KIND_FENCED:
			locks = append(locks, s.FencedLock(m.Name))
		case messages.Kind_KIND_FAIR:
			locks = append(locks, s.FairLock(m.Name))
		default:
			locks = append(locks, s.Lock(m.Name))
		}
	}
	return lockkeeper.MultiLock(locks...)
}

var kinds = map[string]conforming{
	"plain": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].Lock(name) },
		message: ofKind(messages.Kind_KIND_REENTRANT),
	},
	"without re-entry": {
		once:    true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].Lock(name) },
		message: ofKind(messages.Kind_KIND_REENTRANT),
	},
	"fenced": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FencedLock(name) },
		message: ofKind(messages.Kind_KIND_FENCED),
	},
	"fair": {
		ordered: true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FairLock(name) },
		message: ofKind(messages.Kind_KIND_FAIR),
	},
	"fair without re-entry": {
		ordered: true, once: true,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].FairLock(name) },
		message: ofKind(messages.Kind_KIND_FAIR),
	},
	"write": {
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.systems[0].ReadWriteLock(name).Write() },
		message: ofKind(messages.Kind_KIND_READ_WRITE),
	},
	"multi": {
		lock: func(p *process, name string) *lockkeeper.Lock { return multi(p, name, 1) },
		message: func(name string) *messages.Lock {
			return &messages.Lock{Kind: messages.Kind_KIND_MULTI, Members: mixed(name)}
		},
		keys: func(name string) []string { return []string{name + "fair"} }, // one of them is the end of all
	},
	"multi on two servers": {
		servers: 2, home: 1, // that of the member whose name comes first
		lock: func(p *process, name string) *lockkeeper.Lock { return multi(p, name, 2) },
		keys: func(name string) []string { return []string{"", name + "fenced"} },
	},
	"red": {
		servers: 3,
		lock:    func(p *process, name string) *lockkeeper.Lock { return p.red.Lock(name) },
		message: ofKind(messages.Kind_KIND_RED),
		keys:    func(name string) []string { return []string{"", name} }, // on a majority
	},
}
