// Package messages contains the messages to and from a Lockkeeper system. It is generated from
// lockkeeper.proto, which documents every message and field.
//
//	request               answer
//	Acquire               Acquired or NotAcquired
//	Release               Released or NotReleased
//	Extend                Extended or Failed
//	ReleaseByID           Released or NotReleased
//	SetExpirablePermits   ExpirablePermitsSet or Failed
//	Cancel                Cancelled or Failed
//	ForceRelease          ForceReleased or Failed
//	Inspect               Status or Failed
//
// Requests about a semaphore, any of which may be answered by PermitsRefused:
//
//	AcquirePermits   PermitsAcquired
//	ReleasePermits   PermitsReleased
//	CancelPermits    PermitsChanged
//	TrySetPermits    PermitsChanged
//	AddPermits       PermitsChanged
//	DrainPermits     PermitsChanged
//	DeletePermits    PermitsChanged
//	InspectPermits   PermitsChanged
//
// Requests about a latch, any of which may be answered by LatchRefused:
//
//	AwaitLatch     LatchOpened
//	CountDown      LatchChanged
//	CancelAwait    LatchChanged
//	TrySetCount    LatchChanged
//	DeleteLatch    LatchChanged
//	InspectLatch   LatchChanged
//
// Each answer has the correlation_id of its request.
//
// A holder receives LeaseAtRisk when renewals of its hold fail, and LeaseLost when the hold has
// ended although the holder did not release it.
//
// SingletonProbe and SingletonHere go between the proxies and the instance of a singleton; only Lockkeeper sends them.
//
// Any client that knows a hold id can release the hold. String, log/slog and encoding/json therefore
// redact it; fmt's %#v does not. Use package protojson to encode a message completely.
package messages

//go:generate go run -C internal/gen .
