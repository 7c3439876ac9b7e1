package model

import (
	"github.com/lockkeeper-go/lockkeeper/core"
)

// run is one command of one client, while it runs.
type run struct {
	*Server
	client Client
	core.Command
	owner Owner
	told  []Publication
}

// Run carries out a command of a client as the scripts do, and tells what was published.
func (s *Server) Run(client Client, c core.Command) (core.Result, []Publication) {
	r := run{Server: s, client: client, Command: c, owner: Owner{client, c.Term}}
	if len(s.setup.Kinds) > 1 {
		result := r.several()
		return result, r.told
	}
	result := r.one(0)
	return result, r.told
}

// RunPart has one part of a MultiLock carry out a command to the whole.
func (s *Server) RunPart(client Client, part int, c core.Command) (core.Result, []Publication) {
	r := run{Server: s, client: client, Command: c, owner: Owner{client, c.Term}}
	result := r.part(part)
	return result, r.told
}

// one carries the command out on one part.
func (r *run) one(part int) core.Result {
	switch r.setup.Kinds[part] {
	case Fair:
		return r.fair(part)
	case ReadWrite, ReadPart, WritePart:
		return r.readWrite(part)
	default:
		return r.reentrant(part)
	}
}

func (r *run) publish(p Publication) { r.told = append(r.told, p) }

func result(o core.Outcome) core.Result { return core.Result{Outcome: o} }
