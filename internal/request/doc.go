// Package request contains the requests about locks, semaphores and latches. A request is a Call: a goroutine makes its
// Call itself, and Rules.Read turns a message into a Call. The package also has the rules that a Call is checked
// against, and delivers the answer to the goroutine, through a Future, or to the actor that has sent the message.
//
// The table of all request messages is in message_table.go.
package request
