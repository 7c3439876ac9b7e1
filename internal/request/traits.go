package request

import "github.com/lockkeeper-go/lockkeeper/messages"

// Traits are the facts about a kind. How lock actors serve it is in package kinds, whose rows have these.
type Traits struct {
	// Word names the kind, with its article, in messages to users.
	Word string
	// Format is the format of a lock of the kind in Redis. Locks of one name that differ in it exclude each other as
	// users of the key.
	Format messages.Kind
	// Consists names the parts of the lock.
	Consists Composition
	// Fenced says that a hold draws a fencing token of its own lock.
	Fenced bool
	// Shared says that a hold may have the shared mode.
	Shared bool
	// MinimumTime says that a hold may have one. Readers share the key, the servers of a RedLock would have to agree, and
	// permits are released by an id.
	MinimumTime bool
	// Permits says that each Acquire gets permits of its own, with ids, and is no re-entry.
	Permits bool
}

// Composition names the parts of a lock.
type Composition uint8

// The compositions. A semaphore and a latch have keys, but no owners.
const (
	OneKey Composition = iota
	SeveralLocks
	SeveralServers
	SemaphoreKey
	LatchKey
)

// DrawsTokens reports whether a hold draws fencing tokens: its own, or those of its members or servers.
func (t *Traits) DrawsTokens() bool {
	return t.Fenced || t.Consists == SeveralLocks || t.Consists == SeveralServers
}

// HasOwners reports whether holds have owners. Requests about a kind without owners have messages of their own.
func (t *Traits) HasOwners() bool { return t.Consists != SemaphoreKey && t.Consists != LatchKey }

// IsLock reports whether the kind is no synchronizer.
func (t *Traits) IsLock() bool { return t.HasOwners() && !t.Permits }

// traits has a row for each kind.
var traits = [...]Traits{
	messages.Kind_KIND_PLAIN: {Word: "a plain or fenced lock", Format: messages.Kind_KIND_PLAIN, MinimumTime: true},
	// A plain and a fenced lock are the same hash; only what a hold draws beside it differs.
	messages.Kind_KIND_FENCED:     {Word: "a plain or fenced lock", Format: messages.Kind_KIND_PLAIN, Fenced: true, MinimumTime: true},
	messages.Kind_KIND_FAIR:       {Word: "a fair lock", Format: messages.Kind_KIND_FAIR, MinimumTime: true},
	messages.Kind_KIND_READ_WRITE: {Word: "a read/write lock", Format: messages.Kind_KIND_READ_WRITE, Shared: true},
	messages.Kind_KIND_RED:        {Word: "a RedLock", Format: messages.Kind_KIND_RED, Consists: SeveralServers},
	messages.Kind_KIND_MULTI:      {Word: "a MultiLock", Format: messages.Kind_KIND_MULTI, Consists: SeveralLocks},
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: {
		Word: "an expirable semaphore", Format: messages.Kind_KIND_EXPIRABLE_SEMAPHORE, Permits: true,
	},
	messages.Kind_KIND_SEMAPHORE: {Word: "a semaphore", Format: messages.Kind_KIND_SEMAPHORE, Consists: SemaphoreKey},
	messages.Kind_KIND_LATCH:     {Word: "a latch", Format: messages.Kind_KIND_LATCH, Consists: LatchKey},
}

// TraitsOf returns the traits of a kind; for an unknown kind, those of a plain lock.
func TraitsOf(kind messages.Kind) *Traits {
	if kind < 0 || int(kind) >= len(traits) {
		return &traits[messages.Kind_KIND_PLAIN]
	}
	return &traits[kind]
}
