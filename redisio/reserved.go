package redisio

import (
	"slices"
	"strings"
)

// makes reports whether a key is one of the form.
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

// Reserved returns what is kept under a key that is derived from the name of a lock, a semaphore or a latch, or
// from a key prefix; "" if the key is none of these.
func Reserved(key string) (holds string) {
	i := slices.IndexFunc(keyForms[:], func(f keyForm) bool { return f.makes(key) })
	if i < 0 {
		return ""
	}
	return keyForms[i].holds
}

// Twin returns the name from which the same keys and channels are derived as from this one: "a" for "{a}". It returns ""
// if there is none.
func Twin(name string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	if inner == "" || inner == name || Holds(inner) != name {
		return ""
	}
	return inner
}
