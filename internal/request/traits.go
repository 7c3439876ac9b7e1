package request

import (
	"slices"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Traits are the facts about a kind. Package kinds, whose rows have these traits, says how lock actors serve the kind.
type Traits struct {
	// Word names the kind, with its article, in messages to users.
	Word string
	// Form is the form of a lock of the kind in Redis; nil for kinds that are not one lock on one Redis.
	Form *forms.Form
	// StoredAs is the first kind of the same form. Locks of one name that differ in it exclude each other as users of
	// the key.
	StoredAs messages.Kind
	// Composition names the parts of the lock.
	Composition Composition
	// Fenced says that a hold draws a fencing token of its own lock.
	Fenced bool
	// Shared says that a hold may have the shared mode.
	Shared bool
	// MinimumTime says that a hold may have a minimum time. Read locks, RedLocks and permits may not: readers share the
	// key, the servers of a RedLock would have to agree, and permits are released by an id.
	MinimumTime bool
	// Permits says that each Acquire gets its own permits, with ids, and is not a re-entry.
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

	NumCompositions
)

// DrawsTokens reports whether a hold draws fencing tokens: its own, or the tokens of its members or servers.
func (t *Traits) DrawsTokens() bool {
	return t.Fenced || t.Composition == SeveralLocks || t.Composition == SeveralServers
}

// HasOwners reports whether holds have owners. Requests about a kind without owners have their own messages.
func (t *Traits) HasOwners() bool { return t.Composition != SemaphoreKey && t.Composition != LatchKey }

// IsLock reports whether the kind is a lock, and not a synchronizer.
func (t *Traits) IsLock() bool { return t.HasOwners() && !t.Permits }

// traits contains a row for each kind.
var traits = [...]Traits{
	messages.Kind_KIND_PLAIN: {Word: "a plain or fenced lock", Form: forms.Plain, MinimumTime: true},
	// A plain and a fenced lock are the same hash; only what a hold draws in addition differs.
	messages.Kind_KIND_FENCED:              {Word: "a plain or fenced lock", Form: forms.Plain, Fenced: true, MinimumTime: true},
	messages.Kind_KIND_FAIR:                {Word: "a fair lock", Form: forms.Fair, MinimumTime: true},
	messages.Kind_KIND_READ_WRITE:          {Word: "a read/write lock", Form: forms.ReadWrite, Shared: true},
	messages.Kind_KIND_RED:                 {Word: "a RedLock", Composition: SeveralServers},
	messages.Kind_KIND_MULTI:               {Word: "a MultiLock", Composition: SeveralLocks},
	messages.Kind_KIND_EXPIRABLE_SEMAPHORE: {Word: "an expirable semaphore", Permits: true},
	messages.Kind_KIND_SEMAPHORE:           {Word: "a semaphore", Composition: SemaphoreKey},
	messages.Kind_KIND_LATCH:               {Word: "a latch", Composition: LatchKey},
}

func init() {
	for kind := range traits {
		traits[kind].StoredAs = messages.Kind(kind)
		same := func(t Traits) bool { return t.Form != nil && t.Form == traits[kind].Form }
		if first := slices.IndexFunc(traits[:], same); first >= 0 {
			traits[kind].StoredAs = messages.Kind(first)
		}
	}
}

// TraitsOf returns the traits of a kind; for an unknown kind, the traits of a plain lock.
func TraitsOf(kind messages.Kind) *Traits {
	if kind < 0 || int(kind) >= len(traits) {
		return &traits[messages.Kind_KIND_PLAIN]
	}
	return &traits[kind]
}
