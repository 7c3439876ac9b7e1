package keyspace

import "regexp"

const (
	// MaxOwners is the maximum number of owners that a forced release names.
	MaxOwners = 1000
	// MaxNote is the maximum length of a note in bytes. Many holds of a System share its record.
	MaxNote = 256
)

var owner = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:-?\d{1,400}(:[0-9a-f]{32})?$`)

// IsOwner reports whether a text is an owner of a lock, as Lockkeeper and Redisson write it; the field of a
// writer also has ":write".
func IsOwner(text string) bool { return owner.MatchString(text) }
