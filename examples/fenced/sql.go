package main

import (
	"context"
	"sync"
)

// The guard in SQL is a column and a condition:
//
//	CREATE TABLE stock (id text PRIMARY KEY, boxes int NOT NULL, token bigint NOT NULL DEFAULT 0)
//
// A holder of the lock shows its token when it reads, in one transaction,
//
//	UPDATE stock SET token = $1 WHERE id = $2 AND token <= $1
//	SELECT boxes FROM stock WHERE id = $2
//
// and again when it writes:
//
//	UPDATE stock SET boxes = $3, token = $1 WHERE id = $2 AND token <= $1
//
// An UPDATE that changes no row is a refusal: the lock was lost to a later holder. Then
// the transaction is rolled back.

// table does in memory what these statements do, so that this program needs no database.
type table struct {
	mu   sync.Mutex // what a transaction is for
	rows map[string]row
}

type row struct {
	boxes int
	token int64
}

// update is UPDATE stock SET …, token = $1 WHERE id = $2 AND token <= $1. It gives the
// number of rows that it has changed.
func (t *table) update(id string, token int64, set func(*row)) (affected int) {
	r, exists := t.rows[id]
	if !exists || r.token > token {
		return 0
	}
	set(&r)
	r.token = token
	t.rows[id] = r
	return 1
}

// conditional is a row of the table behind the condition.
type conditional struct {
	table *table
	id    string
}

func (c conditional) read(_ context.Context, token int64) (int, error) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.table.update(c.id, token, func(*row) {}) == 0 {
		return 0, stale(token, c.table.rows[c.id].token)
	}
	return c.table.rows[c.id].boxes, nil
}

func (c conditional) write(_ context.Context, token int64, boxes int) error {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.table.update(c.id, token, func(r *row) { r.boxes = boxes }) == 0 {
		return stale(token, c.table.rows[c.id].token)
	}
	return nil
}
