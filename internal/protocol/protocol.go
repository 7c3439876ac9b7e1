// Package protocol translates the commands of locks, semaphores and latches to Redis: it chooses the script, its keys
// and its arguments, and interprets the reply. Keys, fields, channels and payloads are Redisson's. Each kind has a
// file.
package protocol

import (
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/lockkeeper-go/lockkeeper/internal/forms"
	"github.com/lockkeeper-go/lockkeeper/internal/lock"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Options are the settings of the commands.
type Options struct {
	// Client is the client part of the owner fields, a UUID.
	Client string
	// WaiterTimeout is the time that a waiter stays in a fair lock's queue after its process last confirmed it.
	WaiterTimeout time.Duration
	// Unconfirmed: commands do not wait for replicas.
	Unconfirmed bool
	// WaitQueue are its settings.
	WaitQueue WaitQueue
}

// Lock is one lock on one Redis.
type Lock struct {
	Form *forms.Form
	// Channel is the channel of its release; for a fair lock, the prefix of those channels.
	Channel string
	// Tokens is the key of its token counter; "" for a kind without one.
	Tokens string

	options *Options
	format  format
	keys    [1]string // Key alone
	// waitQueue is the key of its wait queue.
	waitQueue string
	// settings are Options.WaitQueue as the scripts take them. The locks of a process share them.
	settings unique.Handle[string]
	// field caches the owner field of the term fieldTerm.
	field     string
	fieldTerm uint64
}

// format makes the calls of the commands of one lock, as its form wants them.
type format interface {
	// call makes the command's call, with the format of its reply.
	call(l *Lock, c lock.Command) redisclient.Call
	// inspect makes the call that reads the state of the lock.
	inspect(l *Lock) redisclient.Call
	// renewal returns the script that renews leases, and its arguments for each after the owner and the lease.
	renewal() (script *scripts.Script, extra []string)
	// member returns what the scripts about several locks need of a member besides its own key: a key that is an
	// argument, and two that are in KEYS.
	member(l *Lock) (argKey string, keys [2]string)
}

// formats has, for each form, the function that makes the format of a lock. The files of the formats add them.
var formats = map[*forms.Form]func(f *forms.Form, name string) format{}

// New returns a lock of a form. name is its key.
func New(form *forms.Form, name string, options *Options) *Lock {
	l := &Lock{
		Form: form, Channel: form.Channel(name), format: formats[form](form, name), options: options, keys: [1]string{name},
	}
	if form.WaitQueue != nil {
		l.waitQueue = form.WaitQueue(name)
	}
	if form.Tokens != nil {
		l.Tokens = form.Tokens(name)
	}
	return l
}

// Key returns the key of the lock.
func (l *Lock) Key() string { return l.keys[0] }

// hash returns the KEYS of most scripts: only the key that exists whenever the lock is held. While a cluster moves
// the slot, that key decides which server runs the script. With several keys, of which some are missing, no
// server would run it.
func (l *Lock) hash() []string { return l.keys[:] }

// Owner returns the owner field of a term.
func (l *Lock) Owner(term uint64) string {
	if term != l.fieldTerm {
		l.field, l.fieldTerm = l.options.Client+":"+strconv.FormatUint(term, 10), term
	}
	return l.field
}

// Keeper returns the owner field that replaces the field of a term that has ended, while its key is left to expire. Its
// client is the same, so that the process is known; it is the owner of no term.
func (l *Lock) Keeper(term uint64) string {
	return l.options.Client + ":0" + strconv.FormatUint(term, 10)
}

// ownTerm returns the term of an owner field of this client, and 0 for other fields.
func (l *Lock) ownTerm(field string) uint64 {
	number, ours := strings.CutPrefix(strings.TrimSuffix(field, ":write"), l.options.Client+":")
	if !ours {
		return 0
	}
	term, err := strconv.ParseUint(number, 10, 64)
	if err != nil || number[0] == '0' { // see Keeper
		return 0
	}
	return term
}

// ChannelOf returns the channel on which a waiter of that term is notified of a release.
func (l *Lock) ChannelOf(term uint64) string {
	if l.Form.Queue != nil {
		return l.Channel + ":" + l.Owner(term)
	}
	return l.Channel
}

// Call returns the command as a call of package redisclient.
func (l *Lock) Call(c *lock.Command, deadline time.Time) redisclient.Call {
	call := l.format.call(l, *c)
	call.Deadline, call.Seq = deadline, c.Seq
	call.Urgent = c.Kind != lock.Acquire && c.Kind != lock.SyncQueue
	call.Confirm = !l.options.Unconfirmed && extendsTrust(c)
	return call
}

// extendsTrust reports whether the command may extend a lease, give a token to a hold, or keep a lock after it.
func extendsTrust(c *lock.Command) bool {
	return c.Kind == lock.Acquire || c.Kind == lock.Keep || c.Kind == lock.Yield || c.Kind == lock.SyncQueue && c.Take
}

// Renewal returns a Renew command as a renewal of package redisclient.
func (l *Lock) Renewal(c *lock.Command, deadline time.Time) redisclient.Renewal {
	script, extra := l.format.renewal()
	return redisclient.Renewal{
		Script: script, Key: l.Key(), Owner: l.Owner(c.Term), Lease: c.Lease, Extra: extra, Immediate: c.Immediate,
		Confirm:  !l.options.Unconfirmed,
		Deadline: deadline, Seq: c.Seq, Format: renewed,
	}
}

func ms(d time.Duration) string {
	return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10)
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
