// Package history records what the clients of a run do with their locks, and reads the
// records afterwards. The record of a killed client ends with the kill: its last request
// has an unknown outcome.
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
	// Valid: the hold was valid at Since and at At, and so at all times between.
	Valid Stage = "valid"
	// Invalid: the hold was no longer valid, although not released.
	Invalid Stage = "invalid"
	// Notified: the holder was notified that the lock is lost.
	Notified Stage = "notified"
	// Releasing and Released: a release began and ended.
	Releasing Stage = "releasing"
	Released  Stage = "released"
	// Died: the holder, an actor, died without a release.
	Died Stage = "died"
	// Counted: the hold count in Redis was read while the hold was valid.
	Counted Stage = "counted"
	// EnsuredUntil: Ensure promised that the hold lasts from Since until At.
	EnsuredUntil Stage = "ensured"
	// Extended: a call to give the hold another lease, which began at Since, has returned.
	Extended Stage = "extended"
	// Called: a call that is not a request has returned; it began at Since.
	Called Stage = "called"
	// Stalled: the process was not able to run from Since to At.
	Stalled Stage = "stalled"
)

// Changes of synchronizers: permits are added, or their number is set; a latch is closed with a
// count, or counted down.
const (
	Add    = "add"
	Resize = "resize"
	Close  = "close"
	Down   = "down"
)

// Inspect and Force are calls on a name that may be a foreign key: inspect it, or release it by force.
const (
	Inspect = "inspect"
	Force   = "force"
)

// Discloses is the prefix of the reason of a refusal whose text contains data of another application's key.
const Discloses = "discloses "

// AlreadyClosed is why a latch was not closed.
const AlreadyClosed = "closed already"

// Part is a lock that is requested; a MultiLock has several.
type Part struct {
	Lock string `json:"lock"`
	// Kind selects the checks of the judge: "plain", "reentrant", "fenced",
	// "fair", "readwrite", "expirable", "semaphore" or "latch".
	Kind   string `json:"kind"`
	Shared bool   `json:"shared,omitempty"`
	// Permits is how many permits are requested.
	Permits int `json:"permits,omitempty"`
	// Total is how many permits there are at first.
	Total int `json:"total,omitempty"`
	// Action is Add, Resize, Close or Down for a change of a synchronizer by Permits, or Inspect or Force.
	Action string `json:"action,omitempty"`
	// CountDownID is the id of a count-down; 0 if it has none.
	CountDownID int `json:"count_down_id,omitempty"`
}

// Event is one line of a history.
type Event struct {
	Stage Stage         `json:"s"`
	At    time.Duration `json:"at"`
	Since time.Duration `json:"since,omitempty"`
	// ID numbers the requests of a process.
	ID int `json:"id,omitempty"`

	// Of a request.
	Worker int    `json:"worker,omitempty"`
	Root   int    `json:"root,omitempty"` // the request whose hold this one re-enters
	Parts  []Part `json:"parts,omitempty"`
	// Unlimited: the request waits without limit.
	Unlimited bool `json:"unlimited,omitempty"`
	// AtLeast is the minimum time of the request's hold, from the grant.
	AtLeast time.Duration `json:"at_least,omitempty"`

	// Bound is how long a request or a call may take; 0 for no limit.
	Bound time.Duration `json:"bound,omitempty"`
	// Call names the call.
	Call string `json:"call,omitempty"`

	// Of a grant or a count.
	Count  int     `json:"count,omitempty"`
	Want   int     `json:"want,omitempty"` // the expected hold count
	Tokens []int64 `json:"tokens,omitempty"`

	// Lease is the fixed lease that a hold was to get; 0 for the lease of the watchdog.
	Lease time.Duration `json:"lease,omitempty"`

	// Err is why a request was refused, or a hold lost, not extended, or not released.
	Err string `json:"err,omitempty"`
	// OutcomeUnknown: the outcome of a release is not known.
	OutcomeUnknown bool `json:"outcome_unknown,omitempty"`
}
