package actors

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/messages"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// What a request may ask for.
const (
	// MaxNameLength bounds a lock's name, in bytes.
	MaxNameLength = 512
	// MinLease is the shortest lease: less than a few round trips cannot be trusted.
	MinLease = 10 * time.Millisecond
	// MaxLease is the longest; Redis refuses TTLs that overflow its clock.
	MaxLease = 100 * 365 * 24 * time.Hour
)

// CheckName says what is wrong with a lock's name.
func (r *Runtime) CheckName(name string) error {
	switch full := r.cfg.KeyPrefix + name; {
	case name == "":
		return errors.New("the lock's name is empty")
	case len(full) > MaxNameLength:
		return fmt.Errorf("the lock's name has %d bytes with its key prefix, and %d are allowed", len(full), MaxNameLength)
	case !utf8.ValidString(name):
		return fmt.Errorf("the lock's name %q is not valid UTF-8", name)
	case r.redis.Cluster() && redisio.Slot(full) != redisio.Slot(redisio.Channel(full)):
		return fmt.Errorf("the lock's name %q does not work in a Redis Cluster: its braces put the lock's key and its channel into different slots; use no brace, or one {tag}", name)
	}
	return nil
}

// CheckAcquire says what is wrong with the times of an Acquire; 0 is the default of each.
func CheckAcquire(lease, wait, maxHold time.Duration) error {
	switch {
	case lease != 0 && (lease < MinLease || lease > MaxLease):
		return fmt.Errorf("the lease is %v, and must be between %v and %v", lease, MinLease, MaxLease)
	case maxHold != 0 && (maxHold < MinLease || maxHold > MaxLease):
		return fmt.Errorf("the max hold is %v, and must be between %v and %v", maxHold, MinLease, MaxLease)
	case lease != 0 && maxHold != 0:
		return fmt.Errorf("a lease of %v and a max hold of %v exclude each other: a fixed lease is its own limit", lease, maxHold)
	case wait < 0:
		return fmt.Errorf("the wait is %v, and must not be negative", wait)
	}
	return nil
}

var errForNobody = errors.New("the request has no sender and names no owner: nobody could be told of the lock, or release it")

// check validates a request and finds its lock.
func (r *Runtime) check(m any) (lockKey, error) {
	if call, ok := m.(*Call); ok {
		return lockKey{name: call.Name}, r.CheckName(call.Name)
	}
	lock := m.(lockRequest).GetLock()
	key := lockKey{name: lock.GetName(), kind: lock.GetKind()}
	if lock == nil {
		return key, errors.New("the request names no lock")
	}
	if err := r.CheckName(lock.Name); err != nil {
		return key, err
	}
	if _, known := messages.Kind_name[int32(lock.Kind)]; !known {
		return key, fmt.Errorf("the kind %d is unknown; known are %s", lock.Kind, listed(messages.Kind_name))
	}
	if _, known := messages.Mode_name[int32(lock.Mode)]; !known {
		return key, fmt.Errorf("the mode %d is unknown; known are %s", lock.Mode, listed(messages.Mode_name))
	}
	acquire, ok := m.(*messages.Acquire)
	if !ok {
		return key, nil
	}
	if acquire.Owner != nil && isFuture(acquire.Owner) {
		return key, errors.New("the owner is a future, which cannot be watched: name an actor, or nobody")
	}
	return key, checkTimes(acquire)
}

func checkTimes(m *messages.Acquire) error {
	for name, d := range map[string]*durationpb.Duration{"lease": m.Lease, "wait": m.Wait, "max_hold": m.MaxHold} {
		if d == nil {
			continue
		}
		if err := d.CheckValid(); err != nil {
			return fmt.Errorf("the %s is not a valid duration: %w", name, err)
		}
		if d.AsDuration() == 0 && name != "wait" {
			return fmt.Errorf("the %s is zero; leave it out for none, or give at least %v", name, MinLease)
		}
	}
	return CheckAcquire(m.Lease.AsDuration(), m.Wait.AsDuration(), m.MaxHold.AsDuration())
}

func listed(names map[int32]string) string {
	var list []string
	for i := range int32(len(names)) {
		list = append(list, names[i])
	}
	return strings.Join(list, ", ")
}
