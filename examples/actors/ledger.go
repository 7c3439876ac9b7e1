package main

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/lockkeeper-go/lockkeeper/messages"
)

// ledgerLock is the lock that an importer must have to write to the ledger.
var ledgerLock = &messages.Lock{Name: "ledger"}

// ledger stands for a table of a database, and each commit for a transaction.
//
// Locks that can be lost do not protect data all by themselves: somebody whose lock
// is lost may write before hearing of it. So the ledger looks where each commit
// continues, and refuses one that comes too late. The lock is there so that this is
// the exception.
type ledger struct {
	mu   sync.Mutex
	rows map[string]int
}

func newLedger() *ledger { return &ledger{rows: map[string]int{}} }

// committed is how many rows of an importer are in the ledger.
func (l *ledger) committed(importer string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[importer]
}

// commit adds rows of an importer after its first from ones.
func (l *ledger) commit(importer string, from, rows int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done := l.rows[importer]; done != from {
		return fmt.Errorf("a late commit of %s: it continues after row %d, and the ledger has %d", importer, from, done)
	}
	l.rows[importer] += rows
	return nil
}

// check tells what is missing.
func (l *ledger) check(jobs []*job) error {
	var wrong []error
	for _, j := range jobs {
		if done := l.committed(j.name); done != j.rows {
			wrong = append(wrong, fmt.Errorf("of %d rows of %s, %d are in the ledger", j.rows, j.name, done))
		}
	}
	return errors.Join(wrong...)
}

// String lists the rows by importer.
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(maps.Clone(l.rows))
}
