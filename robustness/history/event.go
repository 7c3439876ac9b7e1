// Package history is what the clients of a run write down about their locks, as it
// happens, and how it is put together afterwards. A client that is killed leaves what
// it has written: what it had asked for last has an unknown outcome.
package history

import "time"

// Stage says what an Event is about.
type Stage string

// The stages of a request and of its hold.
const (
	// Asked: a request for a lock is about to be made.
	Asked Stage = "asked"
	// Granted and Refused: it was answered.
	Granted Stage = "granted"
	Refused Stage = "refused"
	// Valid: the hold was trusted at Since and at At, and so all the time between.
	Valid Stage = "valid"
	// Invalid: the hold was not trusted any more, although not released.
	Invalid Stage = "invalid"
	// Told: the holder learned that the lock is lost.
	Told Stage = "told"
	// Releasing and Released: the lock was given back.
	Releasing Stage = "releasing"
	Released  Stage = "released"
	// Died: the holder, an actor, has died without a release.
	Died Stage = "died"
	// Counted: Redis said how often the lock is held, while the hold was trusted.
	Counted Stage = "counted"
	// EnsuredUntil: the hold was promised to last from Since until At.
	EnsuredUntil Stage = "ensured"
	// Called: a call that is not a request has returned; it began at Since.
	Called Stage = "called"
	// Stalled: the process was not able to run from Since to At.
	Stalled Stage = "stalled"
)

// What is done to synchronizers: so many permits are added, or it is said how many there are; a latch
// is closed with a count, or counted down.
const (
	Add    = "add"
	Resize = "resize"
	Close  = "close"
	Down   = "down"
)

// Look and Force are what is asked of a name that is not a lock: what its state is, and to free it.
const (
	Look  = "look"
	Force = "force"
)

// Discloses is how the reason of a refusal begins that tells what another application's key holds.
const Discloses = "discloses "

// Occupied is why a latch was not closed: it was already.
const Occupied = "closed already"

// Part is a lock that is asked for; a MultiLock has several.
type Part struct {
	Lock string `json:"lock"`
	// Kind is what the judge has to expect of it: "plain", "reentrant",
	// "fenced", "fair", "permits", "leased", "semaphore" or "latch".
	Kind   string `json:"kind"`
	Shared bool   `json:"shared,omitempty"`
	// Takes is how many permits are asked for, of that many when there are first some.
	Takes int `json:"takes,omitempty"`
	Of    int `json:"of,omitempty"`
	// Does is Add, Resize, Close or Down if a synchronizer is changed, by Takes, or Look or Force; By is the id of who
	// counts down, 0 if he has none.
	Does string `json:"does,omitempty"`
	By   int    `json:"by,omitempty"`
}

// Event is one line of a history.
type Event struct {
	Stage Stage         `json:"s"`
	At    time.Duration `json:"at"`
	Since time.Duration `json:"since,omitempty"`
	// ID numbers the requests of a process.
	ID int `json:"id,omitempty"`

	// Of what is asked.
	Worker int    `json:"worker,omitempty"`
	Root   int    `json:"root,omitempty"` // the request whose hold this one re-enters
	Parts  []Part `json:"parts,omitempty"`
	// Patient: it waits without limit.
	Patient bool `json:"patient,omitempty"`

	// Bound is how long a request or a call may take; 0 for no limit. Call names the call.
	Bound time.Duration `json:"bound,omitempty"`
	Call  string        `json:"call,omitempty"`

	// Of what is granted or counted.
	Count  int     `json:"count,omitempty"`
	Want   int     `json:"want,omitempty"` // how often it should be held
	Tokens []int64 `json:"tokens,omitempty"`

	// Why it was refused, lost, or not released.
	Err string `json:"err,omitempty"`
	// Doubtful: the outcome of a release is not known.
	Doubtful bool `json:"doubtful,omitempty"`
}
