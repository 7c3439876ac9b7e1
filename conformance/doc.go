// Package conformance is a suite of tests for locks: what anybody may expect of a
// distributed lock with leases, whatever kind it is and wherever it is kept.
//
//	func TestConformance(t *testing.T) { conformance.Run(t, myAdapter{}) }
//
// An [Adapter] makes a lock known to the suite. What every lock can do is asked of
// [Adapter], [Client] and [Hold]; the rest is optional: an adapter that can do more
// implements more of the interfaces [Reenterer], [Tokened], [Mortal], [ForceReleaser],
// [Inspector], [Killer], [Crasher] and [Deleter], and the cases that need them are run
// instead of being skipped.
//
// Every case opens clients of its own and uses a lock of its own, and the cases run
// beside each other. After each, all its clients are closed, and nothing of its lock
// may be left in the storage; after all of them, no goroutine in the process.
//
// No case asserts how fast something is: whatever is to happen may take up to [Limit],
// and only a suite that fails takes that long.
package conformance
