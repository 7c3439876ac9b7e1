package request

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// The limits of a request.
const (
	// MaxNameLength bounds a name, in bytes.
	MaxNameLength = 512
	// MinLease is the shortest lease, since a lease of only a few round trips cannot be trusted.
	MinLease = 10 * time.Millisecond
	// MaxLease is the longest lease: Redis refuses TTLs that overflow its clock.
	MaxLease = 100 * 365 * 24 * time.Hour
)

// Home is a System as the requests to it see it.
type Home interface {
	Rules() *Rules
	// DrawOrder returns the order, as indexes, in which the members of a MultiLock draw their tokens.
	DrawOrder(members []Member) []int
}

// Rules check the requests to a System.
type Rules struct {
	System Home
	// ID is the client part of the owner fields of the System.
	ID string
	// KeyPrefix comes before every name.
	KeyPrefix string
	// Cluster says that Redis is a cluster.
	Cluster bool
	// Sharded says that locks use sharded pub/sub.
	Sharded bool
	// Config contains the times; Watchdog bounds fixed leases on a RedLock.
	Config *machine.Config
	// RedLock returns the Systems of the RedLock of this System; nil if it has no RedLock.
	RedLock func() []Home
	// Actors is the actor system of the owners that are local actors.
	Actors *actor.ActorSystem
}

// checkLock returns an error if a message does not name a lock correctly.
func (r *Rules) checkLock(kind messages.Kind, mode messages.Mode, name string) error {
	if _, known := messages.Kind_name[int32(kind)]; !known {
		return fmt.Errorf("the kind %d is unknown; known are %s", kind, listed(messages.Kind_name))
	}
	if !TraitsOf(kind).HasOwners() {
		return fmt.Errorf("a %v is not a lock: requests about it have messages of their own, such as AcquirePermits and AwaitLatch", kind)
	}
	if _, known := messages.Mode_name[int32(mode)]; !known {
		return fmt.Errorf("the mode %d is unknown; known are %s", mode, listed(messages.Mode_name))
	}
	if mode == messages.Mode_MODE_SHARED && !TraitsOf(kind).Shared {
		return fmt.Errorf("the mode %v is for KIND_READ_WRITE only, and not for %v", mode, kind)
	}
	if TraitsOf(kind).Composition != SeveralServers {
		return r.CheckName(name)
	}
	systems := r.RedLock() // their key prefixes may differ
	if len(systems) == 0 {
		return errors.New("there is no RedLock on this System: call NewRedLock first")
	}
	for _, system := range systems {
		if err := system.Rules().CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// CheckName returns an error if the name of a lock, a semaphore or a latch is not valid.
func (r *Rules) CheckName(name string) error {
	switch full := r.KeyPrefix + name; {
	case name == "":
		return errors.New("the name is empty")
	case len(full) > MaxNameLength:
		return fmt.Errorf("the name has %d bytes with its key prefix, and %d are allowed", len(full), MaxNameLength)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not valid UTF-8", name)
	case r.Cluster && keyspace.Slot(full) != keyspace.Slot(keyspace.Channel(full)):
		return fmt.Errorf("the name %q does not work in a Redis Cluster: its braces put the key and its channel "+
			"into different slots; use no brace, or one {tag}", name)
	case keyspace.Reserved(full) != "":
		return fmt.Errorf("the name %q is reserved: Redis keeps %s under such a key, %q; use another name", name, keyspace.Reserved(full), full)
	case keyspace.Twin(full) != "":
		return fmt.Errorf("the key %q would share its queue, its counters and its channels with %q; "+
			"use a name with more than the braces, such as %q", full, keyspace.Twin(full), full+":name")
	}
	return nil
}

// CheckTimes returns an error if the times of an Acquire or an Extend are not valid; 0 stands for none.
func (call *Call) CheckTimes() error {
	lease, wait, maxHold, atLeast := call.Lease, call.Wait, call.MaxHold, call.AtLeast
	switch {
	case lease != 0 && (lease < MinLease || lease > MaxLease):
		return fmt.Errorf("the lease is %v, and must be between %v and %v", lease, MinLease, MaxLease)
	case maxHold != 0 && (maxHold < MinLease || maxHold > MaxLease):
		return fmt.Errorf("the max hold is %v, and must be between %v and %v", maxHold, MinLease, MaxLease)
	case lease != 0 && maxHold != 0:
		return fmt.Errorf("a lease of %v and a max hold of %v exclude each other: a fixed lease is its own limit", lease, maxHold)
	case atLeast != 0 && (atLeast < MinLease || atLeast > MaxLease):
		return fmt.Errorf("the minimum time is %v, and must be between %v and %v", atLeast, MinLease, MaxLease)
	case lease != 0 && atLeast != 0 && atLeast > lease-machine.Margin(lease):
		return fmt.Errorf("a minimum time of %v is longer than the hold of a lease of %v, which is lost %v before the end of the lease",
			atLeast, lease, machine.Margin(lease))
	case atLeast != 0 && !call.keepsMinimum():
		return errors.New("a minimum time is for plain, fenced and fair locks, and a MultiLock of such locks")
	case wait < 0:
		return fmt.Errorf("the wait is %v, and must not be negative", wait)
	}
	return nil
}

// CheckNote returns an error if the note of an Acquire is not valid.
func (call *Call) CheckNote() error {
	switch {
	case len(call.Note) > keyspace.MaxNote:
		return fmt.Errorf("the note has %d bytes, and %d are allowed", len(call.Note), keyspace.MaxNote)
	case !utf8.ValidString(call.Note):
		return fmt.Errorf("the note %q is not valid UTF-8", call.Note)
	}
	return nil
}

// keepsMinimum reports whether a hold of the lock can have a minimum time.
func (call *Call) keepsMinimum() bool {
	if call.Members != nil {
		return !slices.ContainsFunc(call.Members.Sorted, func(m Member) bool { return !TraitsOf(m.Kind).MinimumTime })
	}
	return TraitsOf(call.Kind).MinimumTime
}

// Check validates a call of a goroutine; the call of a message is valid already (see requestMessages).
func (r *Rules) Check(call *Call) error {
	switch {
	case call.By != nil, call.Members != nil:
		return nil
	case call.Count != nil:
		return r.checkCount(call)
	}
	return r.checkLock(call.Kind, call.Mode, call.Name)
}

// CheckOwners returns an error if a forced release cannot name these owners.
func CheckOwners(owners []string) error {
	if len(owners) > keyspace.MaxOwners {
		return fmt.Errorf("the forced release names %d owners, and %d are allowed", len(owners), keyspace.MaxOwners)
	}
	for _, owner := range owners {
		if !keyspace.IsOwner(owner) {
			return errors.New("a forced release names owners as \"<client uuid>:<number>\", as in Status.Owners")
		}
	}
	return nil
}

// CheckRed bounds fixed leases on a RedLock by Watchdog. A restarted server has no vote for that
// time, and no lock that it has forgotten may live longer.
func (r *Rules) CheckRed(kind messages.Kind, members *Members, lease time.Duration) error {
	if members != nil {
		for _, one := range members.Sorted {
			if err := one.System.Rules().CheckRed(one.Kind, nil, lease); err != nil {
				return err
			}
		}
	}
	if TraitsOf(kind).Composition == SeveralServers && lease > r.Config.Watchdog {
		return fmt.Errorf("the lease is %v, and on a RedLock it must not be longer than Watchdog, which is %v", lease, r.Config.Watchdog)
	}
	return nil
}

// nameMembers checks the lock that a message names, and gives the call the members of a MultiLock.
func (r *Rules) nameMembers(call *Call, lock *messages.Lock) (err error) {
	if TraitsOf(lock.Kind).Composition != SeveralLocks {
		if len(lock.Members) > 0 {
			return fmt.Errorf("members are for KIND_MULTI only, and not for %v", lock.Kind)
		}
		return r.checkLock(lock.Kind, lock.Mode, lock.Name)
	}
	if lock.Name != "" || lock.Mode != messages.Mode_MODE_EXCLUSIVE {
		return fmt.Errorf("a %v has members instead of a name and a mode of its own", lock.Kind)
	}
	var list []Member
	for _, one := range lock.Members {
		list = append(list, Member{System: r.System, Kind: one.GetKind(), Mode: one.GetMode(), Name: one.GetName()})
	}
	call.Members, err = NewMembers(list)
	return err
}

func checkTimes(m *messages.Acquire, call *Call) error {
	for _, each := range []struct {
		name string
		time *durationpb.Duration
	}{{"lease", m.Lease}, {"wait", m.Wait}, {"max_hold", m.MaxHold}, {"at_least", m.AtLeast}} {
		if err := checkTime(each.name, each.time); err != nil {
			return err
		}
	}
	return call.CheckTimes()
}

// checkTime returns an error if a duration of a request by message is not valid; nil stands for none.
func checkTime(name string, d *durationpb.Duration) error {
	if d == nil {
		return nil
	}
	if err := d.CheckValid(); err != nil {
		return fmt.Errorf("the %s is not a valid duration: %w", name, err)
	}
	if d.AsDuration() == 0 && name != "wait" {
		return fmt.Errorf("the %s is zero; leave it out for none, or give at least %v", name, MinLease)
	}
	return nil
}

func listed(names map[int32]string) string {
	var list []string
	for i := range int32(len(names)) {
		list = append(list, names[i])
	}
	return strings.Join(list, ", ")
}
