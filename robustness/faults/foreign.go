package faults

import (
	"fmt"
	"maps"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
	"github.com/lockkeeper-go/lockkeeper/robustness/traffic"
)

// plant writes another application's hash to a name that is in use, as soon as the key does not exist.
func plant(w *World) error {
	name := traffic.ForeignName(traffic.ForeignKinds[w.random.IntN(len(traffic.ForeignKinds))])
	fields := maps.Clone(traffic.ForeignFields)
	if w.random.IntN(2) == 0 { // one field is like a field of a lock
		fields["6f8d1c1e-3c1b-4b52-9d0e-0d6f8f1d2a77:7"] = "1"
	}
	command := []string{"EVAL",
		`if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end return redis.call('HSET', KEYS[1], unpack(ARGV))`, "1", name}
	for field, value := range fields {
		command = append(command, field, value)
	}
	for range 100 {
		planted, err := w.server.Do(command...)
		if err != nil {
			return err
		}
		if planted.Str != "0" {
			w.round.planted[name] = fields
			return w.during(history.Fault{Name: "foreign hash", Proc: -1, Lock: name, Foreign: true}, func() error { return nil })
		}
	}
	return nil
}

// changed returns the foreign keys that were changed, and removes them all.
func (w *World) changed() (changed []string, err error) {
	for name, fields := range w.round.planted {
		reply, err := w.server.Do("HGETALL", name)
		if err != nil {
			return nil, err
		}
		found := reply.Map()
		ttl, err := w.server.Do("PTTL", name)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(found, fields) || ttl.Str != "-1" {
			changed = append(changed, fmt.Sprintf("%s was %q, and is %q, with the TTL %s", name, fields, found, ttl.Str))
		}
		if _, err := w.server.Do("DEL", name); err != nil {
			return nil, err
		}
	}
	return changed, nil
}
