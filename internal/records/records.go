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

// ErrMore is that there are more Systems than List has returned.
var ErrMore = backend.ErrMore

// process is a record as package messages spells it.
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

// Holder has what is known of the process of a holder.
type Holder struct {
	Process *messages.Process
	// Waiters and HeldAtLeast are what its record says of the lock; nil and 0 if it says nothing.
	Waiters     *int64
	HeldAtLeast time.Duration
	// Note is that of the owner; "" if there is none.
	Note string
}

// LookUp finds out which process an owner of a lock is in. own is the record of this System, nil if it has none. found
// is called once, on any goroutine.
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

// AddTo adds what is known of the holder to the status of a lock. client is that of this System: of its holder more is
// known without its record. Another process may be the holder of a lock that readers hold here as well.
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
