// Package scripts holds the Lua scripts that Lockkeeper runs inside Redis, one file per operation. The header of a file
// documents its KEYS, ARGV and reply, and its first lines name them in the same order. A line
// "--- include common/x.lua" stands for that file, which has what several scripts need, or what would hide the rest of
// one. A script includes it as late as it can, since the definitions in it cost time in Redis; if it is indented, only
// its block has them. Names in capitals that no file defines are from this one. docs/glossary.md defines the terms.
//
// The scripts leave the same state in Redis as Redisson's: the same key, field, channel and payload. Besides Redisson's
// keys they have their own, which begin with lockkeeper_ after any prefix. They set the hold count instead of adding to
// it, so that each is safe to send again.
package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
)

// Script is one operation: its Lua source, the SHA-1 of the source for EVALSHA, and the
// shape of its reply.
type Script struct {
	Name   string
	Source string
	SHA    string
	Reply  Shape
	// Sharded is the same operation for a cluster with sharded pub/sub.
	Sharded *Script
}

// Shape describes a reply: an array of Numbers and Texts, in any order, or a single number
// or text. Nil means that the reply may be nil instead. A script for many locks replies with
// that many for each lock.
type Shape struct {
	Numbers, Texts int
	Nil            bool
}

// The values of the first number of a reply; in the reply to a renewal, of each number. The
// scripts use the same names, in capitals.
const (
	// Refused: another owner holds the lock.
	Refused int64 = 0
	// Granted: the owner holds the lock.
	Granted int64 = 1
	// TokensLeft: the owner holds the lock, and Draw must still draw its tokens.
	TokensLeft int64 = 2
	// Absent: the owner does not hold the lock.
	Absent int64 = -1
	// TooNew: the server's memory is too new for it to vote.
	TooNew int64 = -3
	// OthersWait: the owner holds the lock, and the wait queue was not empty. It may also replace a TTL.
	OthersWait int64 = -4

	// NotReleased and Released are the outcomes of a yield.
	NotReleased int64 = 0
	Released    int64 = 1

	// Renewed, Gone and Taken are the outcomes of a renewal.
	Renewed int64 = 1
	Gone    int64 = 0
	Taken   int64 = -1

	// NoKey replaces a TTL if there is no such key, as in Redis.
	NoKey int64 = -2
)

// maxQueueFields is the maximum number of fields of a wait queue that a script reads to make its order anew: more would
// block Redis for long. A queue in order may have any number.
const maxQueueFields int64 = 10_000

// MaxEntryTTL is the longest time in ms that an entry of a wait queue may last without being confirmed, and so the
// longest lease of a transfer. A longer one is not from a client of ours.
const MaxEntryTTL int64 = 24 * 60 * 60 * 1000

// constant is a name that scripts use, and its value in Lua.
type constant struct {
	name  string
	value any
}

var constants = []constant{
	{"REFUSED", Refused}, {"GRANTED", Granted}, {"TOKENS_LEFT", TokensLeft}, {"ABSENT", Absent}, {"TOO_NEW", TooNew},
	{"OTHERS_WAIT", OthersWait}, {"NO_KEY", NoKey}, {"NOT_RELEASED", NotReleased}, {"RELEASED", Released},
	{"RENEWED", Renewed}, {"GONE", Gone}, {"TAKEN", Taken},
	{"MAX_QUEUE_FIELDS", maxQueueFields}, {"MAX_ENTRY_TTL", MaxEntryTTL},
}

// texts are names for texts in the scripts: what the keys or channels of all locks have in common, and the patterns of
// entries. The text replaces the name, which costs nothing in Redis.
var texts = [][2]string{
	{"TURN_CHANNEL", keyspace.TurnChannel("")},
	{"ASKED", strings.TrimPrefix(keyspace.AskedChannel(""), keyspace.TurnChannel(""))},
	{"WAITERS_CHANNEL", beforeName(keyspace.Waiters)},
	{"WAIT_QUEUE_KEY", beforeName(keyspace.WaitQueue)},
	{"LOCK_CHANNEL", beforeName(keyspace.Channel)},
	{"READ_WRITE_CHANNEL", beforeName(keyspace.ReadWriteChannel)},
	{"READ_LEASE_KEY", keyspace.ReadLease},
	{"ADDED_ENTRY", "^" + entry + "$"},
	{"STORED_ENTRY", "^(%d+) (%d+) " + entry + "$"},
	{"ANY_ENTRY", "^((%d+) (%d+) " + entry + ") ?([-%d]*)$"},
}

// entry is the pattern of what a client says in its entry of a wait queue. An ADDED_ENTRY of an ARGV, and a
// STORED_ENTRY of the queue, reserve no lock; ANY_ENTRY is stored, and may. See common/wait_queue_entries.lua.
const entry = "(%d+) (%d+) (%d+) ([01]) (%d+) ([01])"

// beforeName returns the beginning of a key or channel of a lock, up to the colon before the lock's name.
func beforeName(of func(name string) string) string {
	before, _, _ := strings.Cut(of(""), ":")
	return before
}

// Sharded pub/sub has its own commands: a channel has a slot, as a key has, and its messages and subscribers stay on
// the slot's server.
var (
	pubSub        = []constant{{"PUBLISH", "'PUBLISH'"}, {"NUMSUB", "'NUMSUB'"}, {"SHARDED", false}}
	shardedPubSub = []constant{{"PUBLISH", "'SPUBLISH'"}, {"NUMSUB", "'SHARDNUMSUB'"}, {"SHARDED", true}}
)

//go:embed *.lua common/*.lua
var files embed.FS

// script returns the script in the file of that name, and adds the variant for sharded pub/sub.
func script(name string, reply Shape) *Script {
	source := expand(name+".lua", map[string]bool{})
	s := New(name, define(pubSub, source), reply)
	s.Sharded = New(name, define(shardedPubSub, source), reply)
	return s
}

// include begins a line of a file that stands for another file.
const include = "--- include "

// expand returns the text of a file. The text of each file that it includes, and that is not in the script yet,
// replaces the line that includes it.
func expand(file string, has map[string]bool) string {
	source, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(source)) {
		part, isInclude := strings.CutPrefix(strings.TrimLeft(line, " "), include)
		switch part = strings.TrimSpace(part); {
		case !isInclude:
			text.WriteString(line)
		case !has[part]:
			has[part] = true
			text.WriteString(expand(part, has))
		}
	}
	return text.String()
}

// define defines the constants that a source uses, also the commands of pub/sub, and replaces the names of texts.
func define(more []constant, source string) string {
	for _, c := range slices.Concat(constants, more) {
		if strings.Contains(source, c.name) {
			source = fmt.Sprintf("local %s = %v\n", c.name, c.value) + source
		}
	}
	for _, of := range texts {
		source = strings.ReplaceAll(source, of[0], "'"+of[1]+"'")
	}
	return source
}

// New returns a script with the given source.
func New(name, source string, reply Shape) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:]), Reply: reply}
}

// The operations on the plain lock.
var (
	Acquire      = script("acquire", Shape{Numbers: 1, Texts: 1, Nil: true})
	Release      = script("release", Shape{Numbers: 1})
	Renew        = script("renew", Shape{Numbers: 1})
	Keep         = script("keep", Shape{Numbers: 1})
	Yield        = script("yield", Shape{Numbers: 2})
	ForceRelease = script("force_release", Shape{Numbers: 1})
	Inspect      = script("inspect", Shape{Numbers: 2, Texts: 2})
)

// The operations that take a lock with fencing tokens, a lock on one server of a RedLock, and
// several locks of any kind.
var (
	FencedAcquire   = script("fenced_acquire", Shape{Numbers: 2, Texts: 1})
	Draw            = script("draw", Shape{Numbers: 2, Texts: 1})
	MajorityAcquire = script("majority_acquire", Shape{Numbers: 2, Texts: 2})
	Memory          = script("memory", Shape{Numbers: 1, Texts: 1})
	AcquireAll      = script("acquire_all", Shape{Numbers: 2, Texts: 2})
	YieldAll        = script("yield_all", Shape{Numbers: 2})
)

// The operations on the fair lock that differ from the plain lock's.
var (
	SyncQueue        = script("sync_queue", Shape{Numbers: 2, Texts: 2})
	FairForceRelease = script("fair_force_release", Shape{Numbers: 1})
	FairInspect      = script("fair_inspect", Shape{Numbers: 2, Texts: 2})
)

// The operations on the read/write lock.
var (
	ReadWriteSet          = script("read_write_set", Shape{Numbers: 2, Texts: 1})
	ReadWriteRelease      = script("read_write_release", Shape{Numbers: 1})
	ReadWriteRenew        = script("read_write_renew", Shape{Numbers: 1})
	ReadWriteYield        = script("read_write_yield", Shape{Numbers: 2})
	ReadWriteForceRelease = script("read_write_force_release", Shape{Numbers: 1})
	ReadWriteInspect      = script("read_write_inspect", Shape{Numbers: 3, Texts: 2})
	CountWaiters          = script("count_waiters", Shape{Numbers: 1})
)

// The operations on the semaphore.
var (
	SemaphoreAcquire = script("semaphore_acquire", Shape{Numbers: 2})
	SemaphoreAdd     = script("semaphore_add", Shape{Numbers: 2})
	SemaphoreYield   = script("semaphore_yield", Shape{Numbers: 2})
	SemaphoreSet     = script("semaphore_set", Shape{Numbers: 2})
	SemaphoreDrain   = script("semaphore_drain", Shape{Numbers: 1})
	SemaphoreInspect = script("semaphore_inspect", Shape{Numbers: 2})
)

// The operations on the latch.
var (
	LatchSet       = script("latch_set", Shape{Numbers: 2})
	LatchCountDown = script("latch_count_down", Shape{Numbers: 1})
	LatchInspect   = script("latch_inspect", Shape{Numbers: 1})
)

// SynchronizerDelete deletes a semaphore or a latch.
var SynchronizerDelete = script("synchronizer_delete", Shape{Numbers: 2})

// ForgetCommand removes the records of commands about semaphores and latches.
var ForgetCommand = script("forget_command", Shape{Numbers: 1})

// The operations on the records in which Systems describe themselves.
var (
	SystemRenew   = script("system_renew", Shape{Numbers: 1})
	SystemRemove  = script("system_remove", Shape{Numbers: 1})
	SystemInspect = script("system_inspect", Shape{Numbers: 1, Texts: 1})
	SystemList    = script("system_list", Shape{Numbers: 2, Texts: 1})
)

// The operations on the whereabouts of a singleton.
var (
	SingletonSet     = script("singleton_set", Shape{Numbers: 1})
	SingletonInspect = script("singleton_inspect", Shape{Texts: 2})
)

// The operations on the entries of a cluster's grains.
var (
	GrainsRegister   = script("grains_register", Shape{Texts: 2})
	GrainsUnregister = script("grains_unregister", Shape{Numbers: 1})
	GrainsMark       = script("grains_mark", Shape{Numbers: 1})
)

// The operations on the expirable semaphore.
var (
	ExpirableAcquire = script("expirable_acquire", Shape{Numbers: 2})
	ExpirableRelease = script("expirable_release", Shape{Numbers: 2})
	ExpirableRenew   = script("expirable_renew", Shape{Texts: 1})
	ExpirableSet     = script("expirable_set", Shape{Numbers: 1})
	ExpirableInspect = script("expirable_inspect", Shape{Numbers: 3, Texts: 1})
)

// All lists every script, for tests and for loading in advance.
var All = []*Script{
	Acquire, Release, Renew, Keep, Yield, ForceRelease, Inspect,
	FencedAcquire, Draw, MajorityAcquire, Memory, AcquireAll, YieldAll,
	SyncQueue, FairForceRelease, FairInspect,
	ReadWriteSet, ReadWriteRelease, ReadWriteRenew, ReadWriteYield, ReadWriteForceRelease, ReadWriteInspect, CountWaiters,
	SemaphoreAcquire, SemaphoreAdd, SemaphoreYield, SemaphoreSet, SemaphoreDrain, SemaphoreInspect,
	LatchSet, LatchCountDown, LatchInspect, SynchronizerDelete, ForgetCommand,
	SystemRenew, SystemRemove, SystemInspect, SystemList,
	SingletonSet, SingletonInspect,
	GrainsRegister, GrainsUnregister, GrainsMark,
	ExpirableAcquire, ExpirableRelease, ExpirableRenew, ExpirableSet, ExpirableInspect,
}
