package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxBusy bounds the locks that a record names.
const MaxBusy = 40

// Busy describes in a record a lock that the System holds or waits for: "<lock> <term> <ms> <waiters>", where
// <lock> is the beginning of the SHA-256 of its key, so that names of any length and of any bytes fit. The
// term is 0 if the System does not hold it.
func Busy(key string, term uint64, held time.Duration, waiters int) string {
	return fmt.Sprintf("%s %d %d %d", busyName(key), term, held.Milliseconds(), waiters)
}

func busyName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// HeldAtLeast returns for how long an owner has held a lock at least; 0 if the record does not contain that.
func (r Record) HeldAtLeast(key, owner string) (d time.Duration) {
	_, number, _ := strings.Cut(owner, ":")
	r.busy(key, func(term string, ms, _ int64) {
		if term == number && ms >= 0 {
			d = milliseconds(ms) + r.Seen
		}
	})
	return d
}

// Waiters returns how many requests for a lock waited in the System when it wrote the record; -1 if unknown.
func (r Record) Waiters(key string) (n int64) {
	r.busy(key, func(_ string, _, waiters int64) { n += max(waiters, 0) })
	if n == 0 && !r.AllWaits || r.Overdue() {
		return -1
	}
	return n
}

func (r Record) busy(key string, each func(term string, ms, waiters int64)) {
	name := busyName(key)
	for _, one := range r.Locks {
		if words := strings.Split(one, " "); len(words) == 4 && words[0] == name {
			ms, _ := strconv.ParseInt(words[2], 10, 64)
			waiters, _ := strconv.ParseInt(words[3], 10, 64)
			each(words[1], ms, waiters)
		}
	}
}
