package lockkeeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/actors"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Process is the process that a client of Redis is in, by the record that its System keeps in
// Redis. The record outlives the locks of a process that was killed.
type Process struct {
	// Client is the client part of the owner field, a UUID. A client without a record has
	// nothing but that: a Redisson client, or a System that is Anonymous, older than the
	// records, or not allowed to write one.
	Client string
	// Application is Config.Application.
	Application string
	Host        string
	PID         int
	// Since is when the System was started, by the clock of its host.
	Since time.Time
	// Version is the version of Lockkeeper; empty if the program does not know it.
	Version string
	// Seen is how long ago the System renewed its record.
	Seen time.Duration
	// Overdue reports whether the System has missed two renewals of its record: it is dead, it
	// hangs, or it does not reach Redis.
	Overdue bool
}

// Known reports whether the client has a record.
func (p Process) Known() bool { return !p.Since.IsZero() }

// String describes the process in one line.
func (p Process) String() string {
	switch {
	case p.Known():
		text := fmt.Sprintf("%s on %s, pid %d, up since %s", printable.Text(p.Application), printable.Text(p.Host), p.PID, p.Since.UTC().Format(time.RFC3339))
		if p.Overdue {
			text += fmt.Sprintf(", not seen for %v", p.Seen.Round(time.Second))
		}
		return text
	case p.Client != "":
		return "client " + printable.Text(p.Client) + ", which has no record"
	}
	return "nobody"
}

// processFrom reads a message; nil is nobody.
func processFrom(m *messages.Process) Process {
	p := Process{
		Client: m.GetClient(), Application: m.GetApplication(), Host: m.GetHost(), PID: int(m.GetPid()), Version: m.GetVersion(),
		Seen: m.GetSeen().AsDuration(), Overdue: m.GetOverdue(),
	}
	if m.GetSince() != nil {
		p.Since = m.Since.AsTime()
	}
	return p
}

// Systems returns the processes of all Systems on this Redis that have a record, with the same
// KeyPrefix: those that live, and those that were killed a short while ago (see
// Process.Overdue). The RedLock of several servers has a record on the server of its first
// System. The cost is one script per 100 Systems, however many keys there are. Of more than 10,000 it
// returns so many, and [ErrMore]. The error may also be ErrUnavailable, ErrRejected or ErrClosed, or the cause of ctx.
func (s *System) Systems(ctx context.Context) ([]Process, error) {
	if s.inner() == nil {
		return nil, fmt.Errorf("lockkeeper: systems: %w: the System is nil", ErrInvalid)
	}
	if ctx == nil {
		return nil, fmt.Errorf("lockkeeper: systems: %w: %w", ErrInvalid, errNoContext)
	}
	records, err := s.runtime.Systems(ctx)
	var all []Process
	for _, one := range records {
		all = append(all, processFrom(one))
	}
	if err != nil {
		if answer := (*redisio.Error)(nil); errors.As(err, &answer) {
			err = fmt.Errorf("%w: %w", s.sorted(answer), err)
		}
		return all, fmt.Errorf("lockkeeper: systems: %w", err)
	}
	return all, nil
}

// ErrMore is that there are more Systems than [System.Systems] has returned.
var ErrMore = actors.ErrMore

// sorted is which of the package's errors an error of Redis is.
func (s *System) sorted(err *redisio.Error) error {
	switch {
	case s.runtime.Closed():
		return ErrClosed
	case err.Transient:
		return ErrUnavailable
	}
	return ErrRejected
}

// record is what a System says of its process; nil if it is to say nothing.
func (c Config) record() *actors.Record {
	if c.Anonymous {
		return nil
	}
	host, _ := os.Hostname()
	return &actors.Record{Application: c.Application, Host: host, PID: os.Getpid(), Since: time.Now().Round(time.Millisecond), Version: Version()}
}

// programName is the default of Config.Application.
func programName() string {
	if len(os.Args) == 0 {
		return ""
	}
	return strings.ToValidUTF8(filepath.Base(os.Args[0]), "�")
}

const module = "github.com/lockkeeper-go/lockkeeper"

// Version returns the version of Lockkeeper that the program was built with; it is empty if the
// program does not know it.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, dep := range append(info.Deps, &info.Main) {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil && dep.Replace.Version != "" {
			return dep.Replace.Version
		}
		return dep.Version
	}
	return ""
}
