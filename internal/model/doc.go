// Package model says what Redis does with the scripts, in Go: what one lock's keys hold,
// what a command makes of them, and what it replies and publishes. It is for tests alone.
//
// A Server is a value. Copying it is cheap, and what happens to a copy leaves no trace in
// the original: no slice is ever changed in place. So it serves both worlds that run once
// and explorations that try everything from every state. Time is a value too.
//
// The model is checked against a real server by random sequences of commands (see the
// tests of package wire). There is a file for each kind of lock, as in package wire.
package model
