package request

import "sync"

// countCalls and releases keep the memory of answered calls for the next calls. As garbage it would cost a tenth of the
// time of a local hand-off. So code that answers a call must not read the call afterwards, unless it refuses the call.
var countCalls = sync.Pool{New: func() any { return new(CountCall) }}

// NewCountCall returns a call about a semaphore or a latch, to be given to DoCount.
func NewCountCall(op Op, n int64) *CountCall {
	call := countCalls.Get().(*CountCall)
	call.Op, call.N = op, n
	call.Call.Count = &call.Count
	return call
}

// Release makes the memory available again.
func (call *CountCall) Release() {
	*call = CountCall{}
	countCalls.Put(call)
}

var releases = sync.Pool{New: func() any { return new(Call) }}

// NewRelease returns a Call that releases a hold.
func NewRelease() *Call {
	call := releases.Get().(*Call)
	call.Op = OpRelease
	return call
}

// FreeRelease makes the memory of a call of NewRelease available again.
func (call *Call) FreeRelease() {
	*call = Call{}
	releases.Put(call)
}
