// Package scripts holds the Lua that Lockkeeper runs inside Redis: one file per
// operation, whose header says what its KEYS, ARGV and reply are.
//
// What the scripts leave in Redis is what Redisson's would leave (its key, its
// field, its channel, its payload); how they get there differs on purpose: they
// set the hold count instead of adding to it, so that each can be sent again.
package scripts

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// Script is one operation: its Lua source and the SHA-1 that EVALSHA knows it by.
type Script struct {
	Name   string
	Source string
	SHA    string
}

func script(name, source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

var (
	//go:embed acquire.lua
	acquire string
	//go:embed release.lua
	release string
	//go:embed renew.lua
	renew string
	//go:embed yield.lua
	yield string
	//go:embed force_release.lua
	forceRelease string
	//go:embed inspect.lua
	inspect string

	//go:embed fenced_acquire.lua
	fencedAcquire string
	//go:embed quorum_acquire.lua
	quorumAcquire string
	//go:embed acquire_all.lua
	acquireAll string

	//go:embed fair_queue.lua
	fairQueue string
	//go:embed fair_force_release.lua
	fairForceRelease string
	//go:embed fair_inspect.lua
	fairInspect string

	//go:embed read_write.lua
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
	//go:embed look.lua
	look string
)

// The operations on the reentrant lock.
var (
	Acquire      = script("acquire", acquire)
	Release      = script("release", release)
	Renew        = script("renew", renew)
	Yield        = script("yield", yield)
	ForceRelease = script("force_release", forceRelease)
	Inspect      = script("inspect", inspect)
)

// The ways to take a reentrant lock that has fencing tokens, or is one of several
// servers', and to take several locks of any kind.
var (
	FencedAcquire = script("fenced_acquire", fencedAcquire)
	QuorumAcquire = script("quorum_acquire", quorumAcquire)
	AcquireAll    = script("acquire_all", acquireAll)
)

// The operations on the fair lock that differ from the reentrant lock's.
var (
	FairQueue        = script("fair_queue", fairQueue)
	FairForceRelease = script("fair_force_release", fairForceRelease)
	FairInspect      = script("fair_inspect", fairInspect)
)

// The operations on the read/write lock.
var (
	ReadWriteSet          = script("read_write_set", readWrite+readWriteSet)
	ReadWriteRelease      = script("read_write_release", readWrite+readWriteRelease)
	ReadWriteRenew        = script("read_write_renew", readWrite+readWriteRenew)
	ReadWriteYield        = script("read_write_yield", readWrite+readWriteYield)
	ReadWriteForceRelease = script("read_write_force_release", readWrite+readWriteForceRelease)
	ReadWriteInspect      = script("read_write_inspect", readWriteInspect)
	Look                  = script("look", readWrite+look)
)

// All lists every script, for tests and for loading them in advance.
var All = []*Script{
	Acquire, Release, Renew, Yield, ForceRelease, Inspect,
	FencedAcquire, QuorumAcquire, AcquireAll,
	FairQueue, FairForceRelease, FairInspect,
	ReadWriteSet, ReadWriteRelease, ReadWriteRenew, ReadWriteYield, ReadWriteForceRelease, ReadWriteInspect, Look,
}
