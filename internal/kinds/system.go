package kinds

import (
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/observe"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
)

// Kinds makes the Adapters of one System, and has the state that they share.
type Kinds struct {
	Settings
	options protocol.Options
	// commands is the client id of the commands of semaphores and latches; see renewCommandClient.
	commands atomic.Pointer[string]
	// forgottenPermits: permits of a semaphore may stay taken.
	forgottenPermits atomic.Bool
	// forgottenCounts: count-downs of a latch may be missing.
	forgottenCounts atomic.Bool
	// permitRecordsUntil is the time until which records of expirable semaphores are kept; see keepPermitRecords.
	permitRecordsUntil atomic.Int64
	// locks pools spare locks, since each event is applied to a copy.
	locks sync.Pool
	// buffers pools spare buffers for the effects of an event.
	buffers sync.Pool
}

// Settings are the settings of Kinds.
type Settings struct {
	// ID is the client part of the owner fields in Redis, a UUID.
	ID     string
	Server *backend.Server
	Host   *host.Host
	// Config is the configuration of all machines.
	Config *machine.Config
	Now    func() machine.Instant
	// NextTerm returns a number that was never returned before.
	NextTerm func() uint64
	// Options are the options of the commands of locks.
	Options LockOptions
}

// LockOptions are the options of the commands of locks; see protocol.Options.
type LockOptions = protocol.Options

// WaitQueue are the settings of the wait queue of a lock.
type WaitQueue = protocol.WaitQueue

// New returns the Kinds of a System without locks in use.
func New(cfg Settings) *Kinds {
	s := &Kinds{Settings: cfg, options: cfg.Options}
	client := s.NewClientID() // another id than for expirable semaphores, which number their commands in another way
	s.commands.Store(&client)
	s.locks.New, s.buffers.New = func() any { return new(lock.Lock) }, func() any { return new(lock.Buffer) }
	return s
}

// Forget records and logs that permits of a semaphore may not have been given back, or that a count-down of a latch may
// be missing.
func (s *Kinds) Forget(name string, latch bool, detail string) {
	s.Server.LeaveToExpire(s.Now() + request.MaxLease)
	if latch {
		s.forgottenCounts.Store(true)
		s.Host.Error("count-downs may be missing", "latch", name, "detail", detail)
		return
	}
	s.forgottenPermits.Store(true)
	s.Host.Error("permits may stay taken though no process has them", "semaphore", name, "detail", detail)
}

// Forgotten reports whether permits of a semaphore may stay taken, and whether count-downs of a latch may be missing:
// Redis has not confirmed a release or a count-down, and nothing makes up for it.
func (s *Kinds) Forgotten() (permits, counts bool) {
	return s.forgottenPermits.Load(), s.forgottenCounts.Load()
}

// NewClientID returns a new client id with the prefix of this System, so that readers can attribute it to this process.
func (s *Kinds) NewClientID() string {
	system := keyspace.SystemOf(s.ID)
	return system + uuid.NewString()[len(system):]
}

// Spec says which lock an actor is for.
type Spec struct {
	Kind *Row
	Name string
	// Members are the members of a MultiLock.
	Members []backend.MemberSpec
	// Tokens is the number of fencing tokens of a MultiLock.
	Tokens int
	// Servers are the servers of a RedLock.
	Servers []*backend.Server
	// Observer observes the tries to get the lock.
	Observer *observe.Lock
}

// New returns the Adapter of a lock actor, and the client part of its owner fields.
func (s *Kinds) New(spec Spec, a Actor) (adapter Adapter, client string) {
	if spec.Kind.new != nil {
		return spec.Kind.new(s, spec.Name, a), s.ID
	}
	l := &lockAdapter{kinds: s, actor: a, client: s.ID, observer: spec.Observer}
	switch spec.Kind.Composition {
	case request.SeveralLocks:
		options := s.withNewClient()
		l.client = options.Client
		l.features = &lock.Features{Parts: true, Tokens: spec.Tokens, WaitQueue: true}
		l.tokens = tokensOf(spec.Members)
		l.Backend, l.signals = backend.NewMultiLock(spec.Members, options, l), &signals{}
		return l, l.client
	case request.SeveralServers:
		options := s.withNewClient()
		l.client = options.Client
		l.features = &lock.Features{Parts: true}
		l.Backend, l.signals = backend.NewRedLock(spec.Servers, spec.Name, options, l), &signals{}
		return l, l.client
	}
	l.features = &spec.Kind.Features
	if l.features.Tokens > 0 {
		l.tokens.sources = []tokenSource{{s.Server, spec.Name}}
	}
	l.Backend = backend.NewSingle(s.Server, spec.Kind.Form, spec.Name, &s.options, l)
	return l, l.client
}

// withNewClient returns the options with a new client id, for a MultiLock or RedLock. Its actor shares keys with other
// lock actors of this System; with the same client id they would mistake its terms for stale terms of their own, and
// release them.
func (s *Kinds) withNewClient() *protocol.Options {
	options := s.options
	options.Client = s.NewClientID()
	return &options
}

// MemberSpecOf returns the spec of a member of a MultiLock. server is the server of the member's System, and servers are
// the servers of its RedLock.
func MemberSpecOf(m request.Member, server *backend.Server, servers []*backend.Server) backend.MemberSpec {
	spec := backend.MemberSpec{
		Server: server, Form: Of(m.Kind).Form, Name: m.Name, Mode: machine.Mode(m.Mode), Fenced: Of(m.Kind).Fenced,
	}
	if Of(m.Kind).Composition == request.SeveralServers {
		spec.Majority = servers
	}
	return spec
}

// ParseTransfer reads a message on the turn channel: the key of the lock and the transfer. ok is false if no waiter is
// meant.
func ParseTransfer(payload string) (key string, t machine.Transfer, ok bool) {
	return protocol.ParseTurn(payload)
}
