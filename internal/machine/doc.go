// Package machine has what the machines of locks, semaphores and expirable semaphores have in common: the events that
// they handle, the effects that they ask for, answers with their reasons, and how failed commands are sent again.
//
// The machines are lock.Lock, semaphore.Pool and expirable.Semaphore. None of them knows the others, and none does
// I/O or reads a clock: a lock actor gives each event its time, and carries out the effects.
package machine
