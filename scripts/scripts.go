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
	_ "embed"
	"encoding/hex"
	"fmt"
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

	// Kept and Released are the outcomes of a yield.
	Kept     int64 = 0
	Released int64 = 1

	// Renewed, Gone and Taken are the outcomes of a renewal.
	Renewed int64 = 1
	Gone    int64 = 0
	Taken   int64 = -1

	// NoKey replaces a TTL if there is no such key, as in Redis.
	NoKey int64 = -2
)

// mostQueueFields is how many fields of a wait queue a script reads at most, to make its order anew: more would block
// Redis for long. A queue in order may have any number.
const mostQueueFields int64 = 10_000

// LongestEntry is for how many ms an entry of a wait queue may last without being confirmed, and so the longest lease
// of a transfer. A longer one is not from a client of ours.
const LongestEntry int64 = 24 * 60 * 60 * 1000

var numbers = []struct {
	name  string
	value int64
}{
	{"REFUSED", Refused}, {"GRANTED", Granted}, {"TOKENS_LEFT", TokensLeft}, {"ABSENT", Absent}, {"TOO_NEW", TooNew}, {"OTHERS_WAIT", OthersWait},
	{"NO_KEY", NoKey}, {"KEPT", Kept}, {"RELEASED", Released}, {"RENEWED", Renewed}, {"GONE", Gone}, {"TAKEN", Taken},
	{"MOST_QUEUE_FIELDS", mostQueueFields}, {"LONGEST_ENTRY", LongestEntry},
}

// script defines the numbers that a source uses, and adds the variant for sharded pub/sub.
func script(name, source string, reply Shape) *Script {
	for _, n := range numbers {
		if strings.Contains(source, n.name) {
			source = fmt.Sprintf("local %s = %d\n", n.name, n.value) + source
		}
	}
	s := New(name, source, reply)
	s.Sharded = New(name, sharded.Replace(source), reply)
	return s
}

// sharded turns the source of a script into that for sharded pub/sub, which has its own commands:
// a channel has a slot, as a key has, and its messages and subscribers stay on the slot's server.
var sharded = strings.NewReplacer("'PUBLISH'", "'SPUBLISH'", "'NUMSUB'", "'SHARDNUMSUB'", "local SHARDED = false", "local SHARDED = true")

// New returns a script with the given source.
func New(name, source string, reply Shape) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:]), Reply: reply}
}

var (
	//go:embed common/take.lua
	take string
	//go:embed common/other_keys.lua
	otherKeys string
	//go:embed common/foreign_hash.lua
	foreignHash string
	//go:embed common/foreign_fields.lua
	foreignFields string

	//go:embed common/number.lua
	number string
	//go:embed common/tokens.lua
	tokens string
	//go:embed common/wait_queue_entries.lua
	waitQueueEntries string
	//go:embed common/wait_queue_order.lua
	waitQueueOrder string
	//go:embed common/wait_queue_transfer.lua
	waitQueueTransfer string
	//go:embed common/wait_queue_claim.lua
	waitQueueClaim string
	//go:embed common/wait_queue.lua
	waitQueueLeave string
	//go:embed common/admit.lua
	admit string

	//go:embed common/ask_holder.lua
	askHolder string
	//go:embed acquire.lua
	acquire string
	//go:embed common/acquire_free.lua
	acquireFree string
	//go:embed common/confirm_entry.lua
	confirmEntry string
	//go:embed common/acquire_refused.lua
	acquireRefused string
	//go:embed common/release_unwanted.lua
	releaseUnwanted string
	//go:embed common/release_to_next.lua
	releaseToNext string
	//go:embed release.lua
	release string
	//go:embed renew.lua
	renew string
	//go:embed keep.lua
	keep string
	//go:embed yield.lua
	yield string
	//go:embed common/force.lua
	force string
	//go:embed force_release.lua
	forceRelease string
	//go:embed inspect.lua
	inspect string

	//go:embed fenced_acquire.lua
	fencedAcquire string
	//go:embed draw.lua
	draw string
	//go:embed common/present_memory.lua
	presentMemory string
	//go:embed common/check_memory.lua
	checkMemory string
	//go:embed majority_acquire.lua
	majorityAcquire string
	//go:embed memory.lua
	memory string
	//go:embed acquire_all.lua
	acquireAll string
	//go:embed yield_all.lua
	yieldAll string

	//go:embed sync_queue.lua
	syncQueue string
	//go:embed fair_force_release.lua
	fairForceRelease string
	//go:embed fair_inspect.lua
	fairInspect string

	//go:embed common/read_write.lua
	readWrite string
	//go:embed read_write_set.lua
	readWriteSet string
	//go:embed read_write_release.lua
	readWriteRelease string
	//go:embed read_write_renew.lua
	readWriteRenew string
	//go:embed read_write_yield.lua
	readWriteYield string
	//go:embed read_write_force_release.lua
	readWriteForceRelease string
	//go:embed read_write_inspect.lua
	readWriteInspect string
	//go:embed count_waiters.lua
	countWaiters string

	//go:embed common/record.lua
	record string
	//go:embed common/once.lua
	once string
	//go:embed forget_command.lua
	forgetCommand string
	//go:embed common/whereabouts.lua
	whereabouts string
	//go:embed common/add.lua
	add string
	//go:embed semaphore_acquire.lua
	semaphoreAcquire string
	//go:embed semaphore_add.lua
	semaphoreAdd string
	//go:embed semaphore_yield.lua
	semaphoreYield string
	//go:embed semaphore_set.lua
	semaphoreSet string
	//go:embed semaphore_drain.lua
	semaphoreDrain string
	//go:embed semaphore_inspect.lua
	semaphoreInspect string
	//go:embed synchronizer_delete.lua
	synchronizerDelete string
	//go:embed latch_set.lua
	latchSet string
	//go:embed latch_count_down.lua
	latchCountDown string
	//go:embed latch_inspect.lua
	latchInspect string

	//go:embed system_renew.lua
	systemRenew string
	//go:embed system_remove.lua
	systemRemove string
	//go:embed system_inspect.lua
	systemInspect string
	//go:embed system_list.lua
	systemList string

	//go:embed singleton_set.lua
	singletonSet string
	//go:embed singleton_inspect.lua
	singletonInspect string
)

// The common parts of the scripts that use the wait queue, of the plain and the fenced lock, and of the
// read/write lock; and those of the synchronizers.
var (
	waitQueue       = waitQueueEntries + waitQueueOrder + waitQueueTransfer + waitQueueClaim + waitQueueLeave
	queueCommon     = take + otherKeys + foreignHash + foreignFields + number + tokens + waitQueue + askHolder
	plainCommon     = queueCommon + admit
	readWriteCommon = queueCommon + readWrite
	onceCommon      = number + record + once
)

// The operations on the reentrant lock.
var (
	Acquire      = script("acquire", take+acquireFree+foreignHash+confirmEntry+acquireRefused+otherKeys+number+tokens+waitQueue+askHolder+admit+acquire, Shape{Numbers: 1, Texts: 1, Nil: true})
	Release      = script("release", releaseUnwanted+take+releaseToNext+otherKeys+foreignHash+foreignFields+number+tokens+waitQueue+askHolder+admit+release, Shape{Numbers: 1})
	Renew        = script("renew", renew, Shape{Numbers: 1})
	Keep         = script("keep", foreignHash+foreignFields+keep, Shape{Numbers: 1})
	Yield        = script("yield", plainCommon+yield, Shape{Numbers: 2})
	ForceRelease = script("force_release", foreignHash+foreignFields+force+askHolder+forceRelease, Shape{Numbers: 1})
	Inspect      = script("inspect", foreignHash+inspect, Shape{Numbers: 2, Texts: 2})
)

// The operations that take a lock with fencing tokens, a lock on one server of a RedLock, and
// several locks of any kind.
var (
	FencedAcquire   = script("fenced_acquire", plainCommon+confirmEntry+fencedAcquire, Shape{Numbers: 2, Texts: 1})
	Draw            = script("draw", number+tokens+draw, Shape{Numbers: 2, Texts: 1})
	MajorityAcquire = script("majority_acquire", take+foreignHash+presentMemory+checkMemory+majorityAcquire, Shape{Numbers: 2, Texts: 2})
	Memory          = script("memory", presentMemory+checkMemory+memory, Shape{Numbers: 1, Texts: 1})
	AcquireAll      = script("acquire_all", readWriteCommon+acquireAll, Shape{Numbers: 2, Texts: 2})
	YieldAll        = script("yield_all", readWriteCommon+yieldAll, Shape{Numbers: 2})
)

// The operations on the fair lock that differ from the reentrant lock's.
var (
	SyncQueue        = script("sync_queue", take+otherKeys+foreignHash+foreignFields+syncQueue, Shape{Numbers: 2, Texts: 2})
	FairForceRelease = script("fair_force_release", otherKeys+foreignHash+foreignFields+force+fairForceRelease, Shape{Numbers: 1})
	FairInspect      = script("fair_inspect", otherKeys+foreignHash+fairInspect, Shape{Numbers: 2, Texts: 2})
)

// The operations on the read/write lock.
var (
	ReadWriteSet          = script("read_write_set", readWriteCommon+readWriteSet, Shape{Numbers: 2, Texts: 1})
	ReadWriteRelease      = script("read_write_release", readWriteCommon+readWriteRelease, Shape{Numbers: 1})
	ReadWriteRenew        = script("read_write_renew", readWriteCommon+readWriteRenew, Shape{Numbers: 1})
	ReadWriteYield        = script("read_write_yield", readWriteCommon+readWriteYield, Shape{Numbers: 2})
	ReadWriteForceRelease = script("read_write_force_release", readWriteCommon+force+readWriteForceRelease, Shape{Numbers: 1})
	ReadWriteInspect      = script("read_write_inspect", foreignHash+readWriteInspect, Shape{Numbers: 3, Texts: 2})
	CountWaiters          = script("count_waiters", readWriteCommon+countWaiters, Shape{Numbers: 1})
)

// The operations on the semaphore.
var (
	SemaphoreAcquire = script("semaphore_acquire", onceCommon+semaphoreAcquire, Shape{Numbers: 2})
	SemaphoreAdd     = script("semaphore_add", onceCommon+add+semaphoreAdd, Shape{Numbers: 2})
	SemaphoreYield   = script("semaphore_yield", onceCommon+add+semaphoreYield, Shape{Numbers: 2})
	SemaphoreSet     = script("semaphore_set", onceCommon+semaphoreSet, Shape{Numbers: 2})
	SemaphoreDrain   = script("semaphore_drain", onceCommon+semaphoreDrain, Shape{Numbers: 1})
	SemaphoreInspect = script("semaphore_inspect", onceCommon+semaphoreInspect, Shape{Numbers: 2})
)

// The operations on the latch.
var (
	LatchSet       = script("latch_set", onceCommon+latchSet, Shape{Numbers: 2})
	LatchCountDown = script("latch_count_down", onceCommon+latchCountDown, Shape{Numbers: 1})
	LatchInspect   = script("latch_inspect", onceCommon+latchInspect, Shape{Numbers: 1})
)

// SynchronizerDelete deletes a semaphore or a latch.
var SynchronizerDelete = script("synchronizer_delete", onceCommon+synchronizerDelete, Shape{Numbers: 2})

// ForgetCommand removes the records of commands about semaphores and latches.
var ForgetCommand = script("forget_command", record+forgetCommand, Shape{Numbers: 1})

// The operations on the records in which Systems describe themselves.
var (
	SystemRenew   = script("system_renew", systemRenew, Shape{Numbers: 1})
	SystemRemove  = script("system_remove", systemRemove, Shape{Numbers: 1})
	SystemInspect = script("system_inspect", systemInspect, Shape{Numbers: 1, Texts: 1})
	SystemList    = script("system_list", systemList, Shape{Numbers: 2, Texts: 1})
)

// The operations on the whereabouts of a singleton.
var (
	SingletonSet     = script("singleton_set", otherKeys+whereabouts+singletonSet, Shape{Numbers: 1})
	SingletonInspect = script("singleton_inspect", whereabouts+singletonInspect, Shape{Texts: 2})
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
	ExpirableAcquire, ExpirableRelease, ExpirableRenew, ExpirableSet, ExpirableInspect,
}
