// Package locktest has the helpers that tests of locks on a real Redis share: processes
// to test (Site), locks as a foreign client sees them (Key), and checks of both.
package locktest
