// Package machinetest plays scripts on the machines that decide: locks, semaphores and expirable semaphores.
//
// A file in testdata shows a rule, which is its first line, by scripts. One event stands on each line of a script:
//
//	# hand-off with a message
//	// Comments say why.
//	held owner=7 fixed=2s
//	acquire b shared
//	10ms release a -> a: over; release #1
//	release: done -> A: freed x0
//
// The first line has the name of a test. An event begins with a word that its machine knows; a word that ends with a
// colon is the reply to the last command of that kind. A time before the word is on the machine's clock, which begins
// at 0; a time with a plus counts from the event before. After the arrow are the effects that the event must bring
// about; without an arrow, there must be none. "..." stands for any effects, and an asterisk for any text; a time with
// a plus counts from now. An empty line within a script begins again with a new machine. Each machine explains its own
// words at its TestDecisions:
//
//	machinetest.Scripts(t, func(t *testing.T) *machinetest.Player { return &newRig(t, lock.Features{}).Player })
package machinetest
