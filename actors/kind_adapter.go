package actors

import (
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// kindAdapter is what lock actors differ in by their kind: the machine that decides, how that is carried out in Redis,
// and which requests are for that kind only. There is one for each lockState.
type kindAdapter interface {
	backend.Place

	// fresh returns a machine that has no requests, and draft a copy to apply an event to. replaced gets the machine
	// whose place a draft has taken, and settled one whose effects are all carried out.
	fresh() machine.Machine
	draft(of machine.Machine) machine.Machine
	replaced(before machine.Machine)
	settled(m machine.Machine)

	// perform carries out a lock.Send, and the effects that only this kind has. It gets a copy, since a
	// pointer given to an interface would put every effect on the heap. The reply to what it sends comes as
	// a message, and replied applies it to the machine.
	perform(e machine.Effect)
	replied(m *replied)
	// request handles a request that is for this kind only, and reports whether it is one.
	request(call *request.Call) bool
	// describe adds to an answer what is here, in this process, and there, in Redis.
	describe(status *messages.Status, here *machine.Snapshot, there *protocol.View)

	// retires is called when the actor leaves, with nothing left to do.
	retires()
	// giveUp is called when the actor leaves nevertheless: it answers all requests, notifies all holders, and returns
	// what is to be done so that nothing is left in Redis. awaits says that Redis's word on that is awaited.
	giveUp(reason machine.Reason, detail string, awaits bool) []cleanup
	// late handles a reply that comes afterwards, and abandon ends the wait for Redis; late may come on any goroutine.
	late(m *replied)
	abandon()
}
