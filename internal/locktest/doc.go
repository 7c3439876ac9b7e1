// Package locktest has what the tests of locks on a real Redis share: processes to test
// (Site), locks as a foreign client sees them (Key), and what is asked of both.
package locktest
