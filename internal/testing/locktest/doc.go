// Package locktest has the helpers that tests of locks on a real Redis share: processes to test (Site), locks as a
// foreign client sees them (Key), and checks of both.
//
//	s, k := locktest.New(t, lockkeeper.Config{}) // a process, and a lock of the test's own
//	hold := s.Acquire(t, k)
//	k.HeldBy(t, s, "1") // by what is in Redis
//	s.Release(t, hold)
//	k.IsFree(t)
package locktest
