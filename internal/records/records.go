// Package records finds out which process a System is, and which locks it holds or waits for, from the record that each
// System keeps in Redis.
package records

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// Record describes the process of a System.
type Record = protocol.Record

// ErrMoreSystems: there are more Systems than List has returned.
var ErrMoreSystems = backend.ErrMoreSystems

// process converts a record to a message.
func process(r Record) *messages.Process {
	p := &messages.Process{
		Client: r.Client, Application: r.Application, Host: r.Host, Pid: int64(r.PID), Version: r.Version,
		Seen: durationpb.New(r.Seen), Overdue: r.Overdue(),
	}
	if !r.Since.IsZero() {
		p.Since = timestamppb.New(r.Since)
	}
	return p
}

// List returns the processes of all Systems that have a record on a server; ctx bounds the wait.
func List(ctx context.Context, server *backend.Server) ([]*messages.Process, error) {
	type answer struct {
		records []Record
		err     error
	}
	answers := make(chan answer, 1)
	server.Records(ctx.Done(), func(records []Record, err error) { answers <- answer{records, err} })
	select {
	case a := <-answers:
		var all []*messages.Process
		for _, one := range a.records {
			all = append(all, process(one))
		}
		return all, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Holder is the knowledge about the process of a holder.
type Holder struct {
	Process *messages.Process
	// Waiters is the number of waiters in the record of the process; nil if the record does not have it.
	Waiters *int64
	// HeldAtLeast is the minimum time of the hold in the record; 0 if the record does not have it.
	HeldAtLeast time.Duration
	// Note is the note of the owner; "" if there is none.
	Note string
}

// LookUp finds out which process an owner of a lock is in. own is the record of this System; nil if it has no record.
// found is called once, on any goroutine.
func LookUp(owner, key string, own *Record, servers []*backend.Server, deadline time.Time, found func(*Holder)) {
	read := func(r Record) {
		h := &Holder{Process: process(r), HeldAtLeast: r.HeldAtLeast(key, owner), Note: r.Note(owner)}
		if n := r.Waiters(key); n >= 0 {
			h.Waiters = &n
		}
		found(h)
	}
	client := protocol.ClientOf(owner)
	if own != nil && keyspace.SystemOf(client) == keyspace.SystemOf(own.Client) {
		read(*own)
		return
	}
	backend.RecordOf(client, servers, deadline, read)
}

// AddTo adds the knowledge about the holder to the status of a lock. client is the client id of this System: its own
// holder is known better without the record. Another process may be the holder of a lock that readers hold here, too.
func (h *Holder) AddTo(status *messages.Status, client string) {
	status.Process, status.Note = h.Process, h.Note
	switch {
	case status.HeldHere && keyspace.SystemOf(protocol.ClientOf(status.Holder)) == keyspace.SystemOf(client):
		status.HolderWaiters, status.HeldAtLeast = &status.Waiters, status.HeldFor
	default:
		status.HolderWaiters = h.Waiters
		if h.HeldAtLeast > 0 {
			status.HeldAtLeast = request.Duration(h.HeldAtLeast)
		}
	}
}
