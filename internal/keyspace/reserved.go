package keyspace

import (
	"slices"
	"strings"
)

// makes reports whether a key has the form.
func (f keyForm) makes(key string) bool {
	rest, is := strings.CutPrefix(key, f.before)
	if is && !f.perPrefix {
		_, rest, is = strings.Cut(rest, "{")
	}
	if f.open {
		return is && strings.Contains(rest, f.behind)
	}
	return is && strings.HasSuffix(rest, f.behind)
}

// Reserved returns a description of the data under a key that is derived from the name of a lock, a semaphore or a
// latch, or from a key prefix. It returns "" for any other key.
func Reserved(key string) (holds string) {
	i := slices.IndexFunc(keyForms[:], func(f keyForm) bool { return f.makes(key) })
	if i < 0 {
		return ""
	}
	return keyForms[i].holds
}

// Twin returns another name from which the same keys and channels are derived: "a" for "{a}". It returns "" if there is
// no such name.
func Twin(name string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	if inner == "" || inner == name || Holds(inner) != name {
		return ""
	}
	return inner
}
