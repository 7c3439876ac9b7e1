package singleton

import "time"

const (
	// Window is the number of messages of a proxy that may be on their way, and so the number of outcomes that may be
	// unknown when an instance disappeared without reporting which messages it had begun.
	Window = 64
	// windowBytes bounds the size of these messages together, unless there is only one: proto.actor sends them in one
	// piece, and gRPC takes at most 4 MiB.
	windowBytes = 1 << 20
)

const (
	// firstPause is the first pause between two lookups; it doubles up to a quarter of Limits.Poll.
	firstPause = 25 * time.Millisecond
	// maxTries bounds the tries, at most one each Poll, to send a message again that does not arrive although later
	// messages arrive, because it cannot be encoded, or is too long for the connection.
	maxTries = 5
)

// Limits are the settings of an Outbox.
type Limits struct {
	// Buffer bounds the messages that are not settled.
	Buffer int
	// Wait bounds the time that a message waits until it is sent, from the last hand-over on. Sums with Wait must not
	// overflow.
	Wait time.Duration
	// Poll is the time that a gate may be silent before the proxy suspects that it has gone.
	Poll time.Duration
}

// Outbox contains the messages that a proxy was sent and whose outcome it does not know.
type Outbox[M any] struct {
	Proxy string
	Limits

	// queue contains the messages in order.
	queue []entry[M]
	// first is the number of the first message of queue.
	first uint64
	// sent is how many messages at the beginning of queue were sent to gate.
	sent int
	// bytes is the size of the messages that are sent.
	bytes int
	// gate is the gate that has answered a probe; "" if no gate has answered since the last instance left.
	gate string
	// place is the place of the instance, as Redis says; its Gate is "" if there is none.
	place Place
	// open: the gate is not suspected to have gone, and messages are sent to it.
	open bool
	// lastAnswer is the time at which the gate has answered, or was first sent a message after it had begun all
	// messages.
	lastAnswer time.Duration
	// probes counts the probes.
	probes uint64
	// probesAtClose is the value of probes when the outbox was closed. Only answers to later probes open it again,
	// since the messages that were sent before such a probe have arrived, or are lost.
	probesAtClose uint64
	// lookupPending: the reply to a lookup is awaited.
	lookupPending bool
	// nextLookup is the time of the next lookup.
	nextLookup time.Duration
	pause      time.Duration
	// progress: a message was begun, or refused, since the outbox was closed.
	progress bool
}

type entry[M any] struct {
	message M
	size    int
	since   time.Duration
	// tries counts the times that the message was sent again, at most one each Poll.
	tries int
	// lastTry is the time at which tries was last counted.
	lastTry time.Duration
}

// Numbered is a message with its number.
type Numbered[M any] struct {
	Message M
	Number  uint64
}

// Actions are the next actions of a proxy, in this order.
type Actions[M any] struct {
	// Refused are messages that were not begun and will not be, or whose outcome is not known.
	Refused []M
	// Sent are the messages to be sent to the gate at the Place, before the probe.
	Sent  []Numbered[M]
	Probe *Probe
	Look  bool
}

// Place returns the place to which messages and probes go.
func (o *Outbox[M]) Place() Place { return o.place }

// Add adds a message of a size in bytes.
func (o *Outbox[M]) Add(now time.Duration, message M, size int) (do Actions[M]) {
	if len(o.queue) >= o.Buffer {
		do.Refused = []M{message}
		return do
	}
	if o.first == 0 {
		o.first = 1
	}
	o.queue = append(o.queue, entry[M]{message: message, size: size, since: now})
	switch {
	case o.open && o.sent == 0 && now-o.lastAnswer > o.Poll: // after a long time the instance may have gone
		o.close(now)
	case o.open:
		o.flush(now, &do)
	case len(o.queue) == 1:
		o.close(now)
	}
	o.tick(now, &do)
	return do
}

// Tick is due at NextWake.
func (o *Outbox[M]) Tick(now time.Duration) (do Actions[M]) {
	o.tick(now, &do)
	return do
}

// Suspect handles a hint that the gate has gone. If the last hint had no result, the pauses between lookups are kept,
// since a message that the gate's node cannot decode causes a hint whenever it is sent.
func (o *Outbox[M]) Suspect(now time.Duration) (do Actions[M]) {
	if o.open && o.progress {
		o.close(now)
	} else if o.open {
		o.open, o.probesAtClose = false, o.probes
	}
	o.tick(now, &do)
	return do
}

// HandleLookup handles the reply to a lookup; w is nil if the lookup has failed.
func (o *Outbox[M]) HandleLookup(now time.Duration, w *Whereabouts) (do Actions[M]) {
	o.lookupPending = false
	if w != nil {
		begun, left := w.Left[o.gate]
		switch {
		case o.gate == "":
		case left:
			o.settle(now, begun, &do)
		case w.At.Gate != "" && w.At.Gate != o.gate: // the last instance disappeared without reporting which messages it had begun
			o.refuse(o.sent, &do)
			o.leave(now)
		}
		o.place = w.At
		if _, left = w.Left[w.At.Gate]; left {
			o.place = Place{}
		}
	}
	if !o.open && len(o.queue) > 0 && o.place.Gate != "" {
		o.probes++
		do.Probe = &Probe{Number: o.probes, Next: o.first, Known: o.place.Gate == o.gate}
	}
	o.nextLookup = now + o.pause
	o.pause = min(2*o.pause, o.Poll/4)
	o.tick(now, &do)
	return do
}

// settle settles the messages that were sent to an instance which has left: that instance has begun some messages, and
// the next instance gets the rest.
func (o *Outbox[M]) settle(now time.Duration, begun map[string]uint64, do *Actions[M]) {
	last, known := begun[o.Proxy]
	if !known { // the gate has forgotten this proxy
		o.refuse(o.sent, do)
	}
	o.removeBegun(last)
	for i := range o.queue {
		o.queue[i].since = now // the wait begins anew, even if the instance was slow
	}
	o.leave(now)
}

// leave ends the relation to a gate, when no message is on its way to the gate.
func (o *Outbox[M]) leave(now time.Duration) {
	for i := range o.sent {
		o.queue[i].tries = 0
	}
	o.gate, o.sent, o.bytes = "", 0, 0
	o.close(now)
}

// HandleState handles an answer of a gate.
func (o *Outbox[M]) HandleState(now time.Duration, h GateState) (do Actions[M]) {
	switch {
	case h.Proxy != o.Proxy || h.Gate == "" || h.Gate != o.place.Gate: // the answer is for an earlier proxy, or late
	case h.Forgotten && h.Gate == o.gate:
		o.refuse(o.sent, &do)
		o.leave(now)
	case h.Forgotten:
	default:
		o.lastAnswer = now
		o.removeBegun(h.Begun)
		if !o.open && h.Probe > o.probesAtClose {
			o.gate, o.open = h.Gate, true
			o.sendAgain(now, h.Received, &do)
		}
		if o.open {
			o.flush(now, &do)
		}
	}
	o.tick(now, &do)
	return do
}

// sendAgain sends the messages again that have not arrived.
func (o *Outbox[M]) sendAgain(now time.Duration, received uint64, do *Actions[M]) {
	arrived := 0
	if received >= o.first {
		arrived = int(min(received-o.first+1, uint64(o.sent)))
	}
	if arrived == o.sent {
		return
	}
	lost := &o.queue[arrived]
	if lost.tries == 0 || now-lost.lastTry >= o.Poll { // a connection may break often for a short time
		lost.tries, lost.lastTry = lost.tries+1, now
	}
	if lost.tries > maxTries && arrived == 0 {
		o.refuse(1, do)
		o.close(now) // the gate learns from the next probe that the message will not come
		return
	}
	for i := arrived; i < o.sent; i++ {
		do.Sent = append(do.Sent, Numbered[M]{o.queue[i].message, o.first + uint64(i)})
	}
}

// flush sends messages that wait.
func (o *Outbox[M]) flush(now time.Duration, do *Actions[M]) {
	if o.sent == 0 {
		o.lastAnswer = now
	}
	for o.sent < min(len(o.queue), Window) {
		next := o.queue[o.sent]
		if o.sent > 0 && o.bytes+next.size > windowBytes {
			return
		}
		do.Sent = append(do.Sent, Numbered[M]{next.message, o.first + uint64(o.sent)})
		o.sent++
		o.bytes += next.size
	}
}

// removeBegun removes the messages up to the last that was begun.
func (o *Outbox[M]) removeBegun(last uint64) {
	for o.sent > 0 && o.first <= last {
		o.drop()
	}
}

// refuse refuses the first n messages, which were sent. Their numbers are not used again.
func (o *Outbox[M]) refuse(n int, do *Actions[M]) {
	for range n {
		do.Refused = append(do.Refused, o.queue[0].message)
		o.drop()
	}
}

// drop removes the first message, which was sent.
func (o *Outbox[M]) drop() {
	o.bytes -= o.queue[0].size
	o.queue[0] = entry[M]{}
	o.queue = o.queue[1:]
	o.first++
	o.sent--
	o.progress = true
}

// close stops sending, until a gate answers a probe.
func (o *Outbox[M]) close(now time.Duration) {
	o.open, o.probesAtClose, o.progress = false, o.probes, false
	o.nextLookup, o.pause = now, min(firstPause, o.Poll/4)
}

func (o *Outbox[M]) tick(now time.Duration, do *Actions[M]) {
	if o.open && o.sent > 0 && now-o.lastAnswer >= o.Poll {
		o.close(now)
	}
	if !o.open && o.sent > 0 && now-o.lastAnswer >= o.Poll+o.Wait { // the gate does not answer, and no other gate was found
		o.refuse(o.sent, do)
		o.probesAtClose = o.probes
	}
	for o.sent < len(o.queue) && now-o.queue[o.sent].since >= o.Wait { // they have no number yet
		do.Refused = append(do.Refused, o.queue[o.sent].message)
		o.queue = append(o.queue[:o.sent], o.queue[o.sent+1:]...)
	}
	if !o.open && !o.lookupPending && len(o.queue) > 0 && now >= o.nextLookup {
		o.lookupPending, do.Look = true, true
	}
}

// NextWake returns the time at which Tick is due; due is false if Tick is not needed.
func (o *Outbox[M]) NextWake() (at time.Duration, due bool) {
	earliest := func(t time.Duration) {
		if !due || t < at {
			at, due = t, true
		}
	}
	if o.open && o.sent > 0 {
		earliest(o.lastAnswer + o.Poll)
	}
	if !o.open && o.sent > 0 {
		earliest(o.lastAnswer + o.Poll + o.Wait)
	}
	if !o.open && !o.lookupPending && len(o.queue) > 0 {
		earliest(o.nextLookup)
	}
	if o.sent < len(o.queue) {
		earliest(o.queue[o.sent].since + o.Wait)
	}
	return at, due
}

// Stop refuses all messages, since the proxy stops. Some of them may have been begun.
func (o *Outbox[M]) Stop() (refused []M) {
	for _, e := range o.queue {
		refused = append(refused, e.message)
	}
	o.queue, o.sent, o.bytes = nil, 0, 0
	return refused
}
