package protocol

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Record describes the process of a System in Redis. The record expires, unless it is renewed every Every.
type Record struct {
	// Client is the client part of the owner fields.
	Client      string    `json:"client"`
	Application string    `json:"application"`
	Host        string    `json:"host"`
	PID         int       `json:"pid"`
	Since       time.Time `json:"since"`
	Version     string    `json:"version"`
	// Every and TTL are in ms: how often the record is renewed, and its TTL at the last time.
	Every int64 `json:"every"`
	TTL   int64 `json:"ttl"`
	// Locks are some of the locks that the System holds or waits for; see Busy. AllWaits: all locks that
	// requests wait for are among them.
	Locks    []string `json:"locks,omitempty"`
	AllWaits bool     `json:"all_waits,omitempty"`
	// Notes are the notes of some of the holds; see Note.
	Notes []string `json:"notes,omitempty"`
	// Seen is the time since the record was renewed. It is not written.
	Seen time.Duration `json:"-"`
}

// Overdue reports whether a System has missed two renewals of its record: it is dead, it hangs,
// or it cannot reach Redis.
func (r Record) Overdue() bool { return r.Seen > 2*milliseconds(r.Every)+time.Second }

// SystemRenew returns the call that writes the record with a TTL.
func (r Record) SystemRenew(keyPrefix string, ttl time.Duration, deadline time.Time) redisclient.Call {
	notes := r.Notes
	r.TTL, r.Notes = ttl.Milliseconds(), nil
	text, _ := json.Marshal(r) // cannot fail: texts, numbers and a time of this era
	if r.Notes = thatFit(notes, MaxRecord-len(text)-len(`,"notes":[]`)); r.Notes != nil {
		text, _ = json.Marshal(r)
	}
	call := r.call(scripts.SystemRenew, keyPrefix, deadline)
	call.Args = append(call.Args, string(text), ms(ttl))
	call.Optional = true
	return call
}

// SystemRemove returns the call that removes the record.
func (r Record) SystemRemove(keyPrefix string, deadline time.Time) redisclient.Call {
	return r.call(scripts.SystemRemove, keyPrefix, deadline)
}

func (r Record) call(script *scripts.Script, keyPrefix string, deadline time.Time) redisclient.Call {
	system := keyspace.SystemOf(r.Client)
	return redisclient.Call{
		Script: script, Keys: []string{keyspace.Systems(keyPrefix), keyspace.System(keyPrefix, system)},
		Args: []string{system}, Deadline: deadline,
	}
}

// ClientOf returns the client part of an owner field.
func ClientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// SystemInspect returns the call that reads the record of a client's System.
func SystemInspect(keyPrefix, client string, deadline time.Time) redisclient.Call {
	return redisclient.Call{
		Script: scripts.SystemInspect, Keys: []string{keyspace.Systems(keyPrefix)}, Args: []string{keyspace.SystemOf(client)}, Deadline: deadline,
	}
}

// Inspected reads the reply to SystemInspect. Without a record, only Client is set.
func Inspected(client string, reply redisclient.Reply) Record {
	if r, ok := readRecord(reply.N[0], reply.S[0]); ok && reply.Err == nil {
		return r
	}
	return Record{Client: client}
}

// MaxSystems is the maximum number of records that are read of a list. Any client may have made the list longer.
const MaxSystems = 10_000

// SystemList returns the call that reads n records of the list, from the one at rank first on.
func SystemList(keyPrefix string, first, n int, deadline time.Time) redisclient.Call {
	return redisclient.Call{
		Script: scripts.SystemList, Keys: []string{keyspace.Systems(keyPrefix)},
		Args: []string{strconv.Itoa(first), strconv.Itoa(first + n - 1)}, Deadline: deadline,
	}
}

// Listed reads the reply to SystemList. It returns how many Systems are on the list, and the first of them that
// is not read.
func Listed(reply redisclient.Reply) (records []Record, all, next int) {
	for line := range strings.Lines(reply.S[0]) {
		left, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ttl, _ := strconv.ParseInt(left, 10, 64)
		if r, ok := readRecord(ttl, text); ok {
			records = append(records, r)
		}
	}
	return records, int(reply.N[0]), int(reply.N[1])
}

// MaxRecord is the maximum size of a record in bytes; the scripts read at most one byte more. All but the notes takes
// at most 4.5 KiB of it.
const MaxRecord = 8192

// readRecord reads a record with left ms of its TTL. Any client may have written it, so a record that cannot be
// shown counts as missing: one that is too long, or whose time has no year of four digits.
func readRecord(left int64, text string) (r Record, ok bool) {
	if left < 0 || len(text) > MaxRecord || json.Unmarshal([]byte(text), &r) != nil {
		return Record{}, false
	}
	if year := r.Since.UTC().Year(); year < 1 || year > 9999 {
		return Record{}, false
	}
	r.Seen = milliseconds(max(r.TTL-left, 0))
	return r, true
}
