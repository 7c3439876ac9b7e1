// Package singleton decides how messages get from proxies to the instance of a singleton: each is begun once, in order
// for each proxy, or refused. It has no I/O, and the time is an argument.
//
// A proxy has an [Outbox], and the gate in front of an instance a [Ledger]. Each gate has its own id, so that a
// message, an answer or a probe for one instance is not taken for one of another instance. Between an Outbox and a
// Ledger there is a sliding window:
//
//   - The messages of a proxy are numbered. A gate takes them without gaps, and ignores all other messages.
//   - A message is begun when the instance is about to handle it, also without gaps. A message that is only queued is
//     not begun: it can still be sent again, or to the next instance.
//   - After each beginning, and to each probe, the gate answers with the numbers that it has received and begun (a
//     [GateState]).
//   - A proxy that suspects that the instance has gone sends no messages. It looks for the whereabouts of the instance
//     in Redis, and probes the gate there. The answer to a probe says which messages were lost on the way: they are
//     sent again.
//
// When an instance has stopped, it leaves the numbers of the last messages that it has begun in Redis, before its lock
// is released. A proxy that reads them knows the outcome of each message. The proxy does not know the outcomes if the
// instance disappeared without leaving the numbers, because its process was killed: then the messages that were on
// their way are refused, not sent again.
package singleton
