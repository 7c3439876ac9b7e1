// Package request contains the requests about locks, semaphores and latches: a Call, which a goroutine makes itself and
// Rules.Read makes of a message; the rules that it is checked against; and the ways in which its answer reaches the
// goroutine, through a Future, or the actor that has sent the message.
//
// The table of all request messages is in message_table.go.
package request
