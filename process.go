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

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/internal/records"
	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Process describes the process of a Redis client, from the record that its System keeps in Redis.
// The record of a process that was killed lasts longer than its locks.
type Process struct {
	// Client is the client part of the owner field, a UUID. It is the only field that is set for a client without a
	// record: a Redisson client, or a System that is Anonymous, has a version without records, or may not write its
	// record. In a cluster, it is also the only field while the server of the records is down.
	Client string
	// Application is Config.Application.
	Application string
	Host        string
	PID         int
	// Since is the time at which the System was started, by the clock of its host.
	Since time.Time
	// Version is the version of Lockkeeper; empty if it is not known.
	Version string
	// Seen is the time since the System renewed its record.
	Seen time.Duration
	// Overdue reports whether the System has missed two renewals of its record, because it is
	// dead, hangs, or cannot reach Redis.
	Overdue bool
}

// Known reports whether the client has a record.
func (p Process) Known() bool { return !p.Since.IsZero() }

// String describes the process in a sentence without a newline.
func (p Process) String() string {
	switch {
	case p.Known():
		text := fmt.Sprintf("%s on %s, pid %d, up since %s", printable.Text(p.Application), printable.Text(p.Host), p.PID,
			p.Since.UTC().Format(time.RFC3339))
		if p.Overdue {
			text += fmt.Sprintf(", not seen for %v", p.Seen.Round(time.Second))
		}
		return text
	case p.Client != "":
		return "client " + printable.Text(p.Client) + ", which has no record"
	}
	return "no process"
}

// processFrom converts a message; nil is the zero Process.
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

// Systems returns the processes of all Systems with the same KeyPrefix that have a record on this Redis: Systems that
// run, and Systems that were killed a short while ago (see Process.Overdue). A RedLock has a record on the server of
// its first System. The cost is one script per 50 Systems, independent of the number of keys. If there are more than
// 10,000 Systems, Systems returns 10,000 processes and [ErrMoreSystems]. The error may also be ErrUnavailable,
// ErrRejected, ErrClosed, or the cause of ctx.
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
			err = fmt.Errorf("%w: %w", s.sentinelOf(answer), err)
		}
		return all, fmt.Errorf("lockkeeper: systems: %w", err)
	}
	return all, nil
}

// ErrMoreSystems: there are more Systems than [System.Systems] has returned.
var ErrMoreSystems = records.ErrMoreSystems

// sentinelOf returns the package's error for an error of Redis.
func (s *System) sentinelOf(err *redisio.Error) error {
	switch {
	case s.runtime.Closed():
		return ErrClosed
	case err.Transient:
		return ErrUnavailable
	}
	return ErrRejected
}

// record returns the record of this process, or nil if the System keeps no record.
func (c Config) record() *records.Record {
	if c.Anonymous {
		return nil
	}
	host, _ := os.Hostname()
	return &records.Record{
		Application: c.Application, Host: host, PID: os.Getpid(), Since: time.Now().Round(time.Millisecond), Version: version(),
	}
}

// programName returns the default of Config.Application.
func programName() string {
	if len(os.Args) == 0 {
		return ""
	}
	return strings.ToValidUTF8(filepath.Base(os.Args[0]), "�")
}

const module = "github.com/lockkeeper-go/lockkeeper"

// version returns the version of Lockkeeper that the program was built with, or "" if the version is not known.
func version() string {
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
