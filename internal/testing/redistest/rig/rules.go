package rig

import "time"

// Rules are the faults of a proxy's network. The zero value has none.
type Rules struct {
	// Refuse closes present and new connections.
	Refuse bool
	// Cut closes the present connections, once.
	Cut bool
	// Up is the direction to the server.
	Up Way
	// Down is the direction back.
	Down Way
	// Stream is both directions of a replica of the server.
	Stream Way
	// DropReplies drops all that the server sends, replies and pushes, and leaves connections open. Connections that have
	// lost something are cut when the rule ends, since their clients would take later replies for the lost replies.
	DropReplies bool
	// DropMessages drops only published messages.
	DropMessages bool
}

// Way is the faults of one direction.
type Way struct {
	// Blocked lets nothing pass. What was sent in the meantime passes afterwards.
	Blocked bool
	// Delay makes everything take longer, in order and without a loss of throughput. What is under way keeps the delay
	// that it was sent with.
	Delay time.Duration
	// Trickle passes a few bytes at a time. A frame that has begun to pass is no longer blocked or dropped.
	Trickle bool
}

const (
	trickleBytes = 7 // bytes at a time
	tricklePause = 2 * time.Millisecond
)
