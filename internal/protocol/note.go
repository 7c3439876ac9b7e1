package protocol

import (
	"encoding/json"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

// Note says in a record what the holder of a lock or of a permit says of its hold: "<of> <text>". Of a lock it is the
// term, which one System never uses twice; of a permit, OfPermit.
func Note(of, text string) string { return of + " " + text }

// OfPermit names a permit, and those that were acquired together with it, in a record by the beginning of the SHA-256
// of what their ids have in common (see machine.PermitID), since every client that knows an id can release the permit.
func OfPermit(id string) string {
	if len(id) == 32 {
		id = id[:16] + id[20:]
	}
	return "permit:" + busyName(id)
}

// Note returns the note of an owner's hold; "" if the record has none. The owner is "<client>:<term>", or the same with
// an OfPermit. A longer text is no note: any client may have written the record.
func (r Record) Note(owner string) string {
	_, what, _ := strings.Cut(owner, ":")
	for _, one := range r.Notes {
		if of, text, _ := strings.Cut(one, " "); of == what && what != "" && len(text) <= keyspace.MaxNote {
			return text
		}
	}
	return ""
}

// thatFit returns the first of the notes for which there are that many bytes of JSON.
func thatFit(notes []string, bytes int) []string {
	for i, one := range notes {
		text, _ := json.Marshal(one)
		if bytes -= len(text) + 1; bytes < 0 {
			return notes[:i:i]
		}
	}
	return notes
}
