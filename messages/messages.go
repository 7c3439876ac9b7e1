// Package messages holds what is sent to and from a Lockkeeper system. It is
// generated from lockkeeper.proto, where every message and field is explained.
//
//	request        answer
//	Acquire        Acquired or NotAcquired
//	Release        Released or NotReleased
//	Cancel         Cancelled or Failed
//	ForceRelease   ForceReleased or Failed
//	Inspect        Status or Failed
//
// A holder is sent LeaseAtRisk when renewals of its hold fail, and LeaseLost
// when the hold is over though the holder did not release it.
//
// A hold id lets whoever knows it release the hold. It is therefore left out
// of String, of log/slog and of encoding/json, though not of fmt's %#v. Use the
// protojson package to write a whole message as JSON.
package messages

//go:generate go run -C internal/gen .
