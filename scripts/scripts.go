// Package scripts holds the Lua scripts that Lockkeeper runs inside Redis, one file per operation. The header of a file
// documents its KEYS, ARGV and reply, and its first lines name them in the same order. The parts that are prepended to
// the files are in common/. docs/glossary.md defines the terms.
//
// The scripts leave the same state in Redis as Redisson's: the same key, field, channel and payload. Beside Redisson's
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

// MaxEntryTTL is the longest time in ms that an entry of a wait queue may last without being confirmed, and so the longest
// lease of a transfer. A longer one is not from a client of ours.
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

// Sharded pub/sub has its own commands: a channel has a slot, as a key has, and its messages and subscribers stay on the
// slot's server.
var (
	pubSub        = []constant{{"PUBLISH", "'PUBLISH'"}, {"NUMSUB", "'NUMSUB'"}, {"SHARDED", false}}
	shardedPubSub = []constant{{"PUBLISH", "'SPUBLISH'"}, {"NUMSUB", "'SHARDNUMSUB'"}, {"SHARDED", true}}
)

//go:embed *.lua common/*.lua
var files embed.FS

// script returns the script in the file of that name, with the parts before it, which are names of files in common/. It
// adds the variant for sharded pub/sub.
func script(name, parts string, reply Shape) *Script {
	source := ""
	for _, part := range strings.Fields(parts) {
		source += read("common/" + part)
	}
	source += read(name)
	s := New(name, define(pubSub, source), reply)
	s.Sharded = New(name, define(shardedPubSub, source), reply)
	return s
}

// define defines the constants that a source uses, and those of pub/sub.
func define(more []constant, source string) string {
	for _, c := range slices.Concat(constants, more) {
		if strings.Contains(source, c.name) {
			source = fmt.Sprintf("local %s = %v\n", c.name, c.value) + source
		}
	}
	return source
}

func read(file string) string {
	source, err := files.ReadFile(file + ".lua")
	if err != nil {
		panic(err)
	}
	return string(source)
}

// New returns a script with the given source.
func New(name, source string, reply Shape) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:]), Reply: reply}
}

// The common parts of the scripts that use the wait queue, of the plain and the fenced lock, and of the
// read/write lock; and those of the synchronizers.
const (
	waitQueue       = "wait_queue_entries wait_queue_read wait_queue_order wait_queue_transfer wait_queue_claim wait_queue"
	queueCommon     = "take other_keys foreign_hash foreign_fields number tokens " + waitQueue + " ask_holder"
	plainCommon     = queueCommon + " admit"
	readWriteCommon = queueCommon + " read_write"
	onceCommon      = "number record once"
	permitsCommon   = onceCommon + " take other_keys wait_queue_entries permits_queue"
)

// The operations on the plain lock.
var (
	Acquire = script("acquire", "take acquire_free foreign_hash confirm_entry acquire_refused other_keys number tokens "+
		waitQueue+" ask_holder admit", Shape{Numbers: 1, Texts: 1, Nil: true})
	Release = script("release", "release_unwanted take release_to_next other_keys foreign_hash foreign_fields number tokens "+
		waitQueue+" ask_holder admit", Shape{Numbers: 1})
	Renew        = script("renew", "", Shape{Numbers: 1})
	Keep         = script("keep", "foreign_hash foreign_fields", Shape{Numbers: 1})
	Yield        = script("yield", plainCommon, Shape{Numbers: 2})
	ForceRelease = script("force_release", "foreign_hash foreign_fields ask_holder force", Shape{Numbers: 1})
	Inspect      = script("inspect", "foreign_hash", Shape{Numbers: 2, Texts: 2})
)

// The operations that take a lock with fencing tokens, a lock on one server of a RedLock, and
// several locks of any kind.
var (
	FencedAcquire   = script("fenced_acquire", plainCommon+" confirm_entry", Shape{Numbers: 2, Texts: 1})
	Draw            = script("draw", "number tokens", Shape{Numbers: 2, Texts: 1})
	MajorityAcquire = script("majority_acquire", "take foreign_hash present_memory check_memory", Shape{Numbers: 2, Texts: 2})
	Memory          = script("memory", "present_memory check_memory", Shape{Numbers: 1, Texts: 1})
	AcquireAll      = script("acquire_all", readWriteCommon, Shape{Numbers: 2, Texts: 2})
	YieldAll        = script("yield_all", readWriteCommon, Shape{Numbers: 2})
)

// The operations on the fair lock that differ from the plain lock's.
var (
	SyncQueue        = script("sync_queue", "take other_keys foreign_hash foreign_fields", Shape{Numbers: 2, Texts: 2})
	FairForceRelease = script("fair_force_release", "other_keys foreign_hash foreign_fields ask_holder force", Shape{Numbers: 1})
	FairInspect      = script("fair_inspect", "other_keys foreign_hash", Shape{Numbers: 2, Texts: 2})
)

// The operations on the read/write lock.
var (
	ReadWriteSet          = script("read_write_set", readWriteCommon, Shape{Numbers: 2, Texts: 1})
	ReadWriteRelease      = script("read_write_release", readWriteCommon, Shape{Numbers: 1})
	ReadWriteRenew        = script("read_write_renew", readWriteCommon, Shape{Numbers: 1})
	ReadWriteYield        = script("read_write_yield", readWriteCommon, Shape{Numbers: 2})
	ReadWriteForceRelease = script("read_write_force_release", readWriteCommon+" force", Shape{Numbers: 1})
	ReadWriteInspect      = script("read_write_inspect", "foreign_hash", Shape{Numbers: 3, Texts: 2})
	CountWaiters          = script("count_waiters", readWriteCommon, Shape{Numbers: 1})
)

// The operations on the semaphore.
var (
	SemaphoreAcquire = script("semaphore_acquire", permitsCommon, Shape{Numbers: 2})
	SemaphoreAdd     = script("semaphore_add", permitsCommon+" add", Shape{Numbers: 2})
	SemaphoreYield   = script("semaphore_yield", permitsCommon+" add", Shape{Numbers: 2})
	SemaphoreSet     = script("semaphore_set", onceCommon, Shape{Numbers: 2})
	SemaphoreDrain   = script("semaphore_drain", onceCommon, Shape{Numbers: 1})
	SemaphoreInspect = script("semaphore_inspect", onceCommon, Shape{Numbers: 2})
)

// The operations on the latch.
var (
	LatchSet       = script("latch_set", onceCommon, Shape{Numbers: 2})
	LatchCountDown = script("latch_count_down", onceCommon, Shape{Numbers: 1})
	LatchInspect   = script("latch_inspect", onceCommon, Shape{Numbers: 1})
)

// SynchronizerDelete deletes a semaphore or a latch.
var SynchronizerDelete = script("synchronizer_delete", onceCommon, Shape{Numbers: 2})

// ForgetCommand removes the records of commands about semaphores and latches.
var ForgetCommand = script("forget_command", "record", Shape{Numbers: 1})

// The operations on the records in which Systems describe themselves.
var (
	SystemRenew   = script("system_renew", "", Shape{Numbers: 1})
	SystemRemove  = script("system_remove", "", Shape{Numbers: 1})
	SystemInspect = script("system_inspect", "", Shape{Numbers: 1, Texts: 1})
	SystemList    = script("system_list", "", Shape{Numbers: 2, Texts: 1})
)

// The operations on the whereabouts of a singleton.
var (
	SingletonSet     = script("singleton_set", "other_keys whereabouts", Shape{Numbers: 1})
	SingletonInspect = script("singleton_inspect", "whereabouts", Shape{Texts: 2})
)

// The operations on the entries of a cluster's grains.
var (
	GrainsRegister   = script("grains_register", "", Shape{Texts: 2})
	GrainsUnregister = script("grains_unregister", "", Shape{Numbers: 1})
	GrainsMark       = script("grains_mark", "", Shape{Numbers: 1})
)

// The operations on the expirable semaphore.
var (
	ExpirableAcquire = script("expirable_acquire", onceCommon+" expirable other_keys", Shape{Numbers: 2})
	ExpirableRelease = script("expirable_release", onceCommon+" expirable other_keys restore", Shape{Numbers: 2})
	ExpirableRenew   = script("expirable_renew", "expirable", Shape{Texts: 1})
	ExpirableSet     = script("expirable_set", onceCommon+" expirable other_keys restore present_memory", Shape{Numbers: 1})
	ExpirableInspect = script("expirable_inspect", onceCommon+" expirable", Shape{Numbers: 3, Texts: 1})
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
