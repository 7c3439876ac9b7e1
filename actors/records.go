package actors

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// introduce has the system say who it is, if it is to.
func (r *Runtime) introduce() {
	if r.cfg.Record == nil {
		return
	}
	own := *r.cfg.Record
	own.Client = r.id
	r.cfg.Record = &own
	r.server.Register(own, r.cfg.Watchdog, r.busy, func(err error) {
		r.host.Warn("Redis refuses the record of this system: no program can see which process holds its locks", "error", err)
	})
}

// KeepsStacks reports whether holders are to keep their stacks.
func (r *Runtime) KeepsStacks() bool { return r.cfg.HoldStacks }

// Closed reports whether Close was called.
func (r *Runtime) Closed() bool { return r.closed.Load() }

// processOf is a record as package messages spells it.
func processOf(r protocol.Record) *messages.Process {
	p := &messages.Process{
		Client: r.Client, Application: r.Application, Host: r.Host, Pid: int64(r.PID), Version: r.Version,
		Seen: durationpb.New(r.Seen), Overdue: r.Overdue(),
	}
	if !r.Since.IsZero() {
		p.Since = timestamppb.New(r.Since)
	}
	return p
}

// ErrMore is that there are more systems than Systems has returned.
var ErrMore = backend.ErrMore

// Systems returns the processes of all systems that have a record in this Redis; ctx bounds the
// wait.
func (r *Runtime) Systems(ctx context.Context) ([]*messages.Process, error) {
	type answer struct {
		records []protocol.Record
		err     error
	}
	answers := make(chan answer, 1)
	r.server.Records(ctx.Done(), func(records []protocol.Record, err error) { answers <- answer{records, err} })
	select {
	case a := <-answers:
		var all []*messages.Process
		for _, one := range a.records {
			all = append(all, processOf(one))
		}
		return all, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
