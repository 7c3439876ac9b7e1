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

// Script is one operation: its Lua source, the SHA-1 that EVALSHA knows it by, and what
// its reply looks like.
type Script struct {
	Name   string
	Source string
	SHA    string
	Reply  Shape
}

// Shape is that of a reply: an array of so many numbers and texts, in any order, or one
// of them alone; and whether it may be nil instead. If it is about many locks: for each.
type Shape struct {
	Numbers, Texts int
	Nil            bool
}

// New makes a script of a source.
func New(name, source string, reply Shape) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:]), Reply: reply}
}

var (
	//go:embed take.lua
	take string
	//go:embed beside.lua
	beside string

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
	//go:embed draw.lua
	draw string
	//go:embed quorum_acquire.lua
	quorumAcquire string
	//go:embed memory.lua
	memory string
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
	Acquire      = New("acquire", take+acquire, Shape{Numbers: 1, Texts: 1, Nil: true})
	Release      = New("release", release, Shape{Numbers: 1})
	Renew        = New("renew", renew, Shape{Numbers: 1})
	Yield        = New("yield", yield, Shape{Numbers: 2})
	ForceRelease = New("force_release", forceRelease, Shape{Numbers: 1})
	Inspect      = New("inspect", inspect, Shape{Numbers: 2, Texts: 2})
)

// The ways to take a reentrant lock that has fencing tokens, or is one of several
// servers', and to take several locks of any kind.
var (
	FencedAcquire = New("fenced_acquire", take+beside+fencedAcquire, Shape{Numbers: 2, Texts: 1})
	Draw          = New("draw", draw, Shape{Numbers: 2, Texts: 1})
	QuorumAcquire = New("quorum_acquire", take+quorumAcquire, Shape{Numbers: 2, Texts: 2})
	Memory        = New("memory", memory, Shape{Numbers: 1, Texts: 1})
	AcquireAll    = New("acquire_all", take+beside+acquireAll, Shape{Numbers: 2, Texts: 2})
)

// The operations on the fair lock that differ from the reentrant lock's.
var (
	FairQueue        = New("fair_queue", take+beside+fairQueue, Shape{Numbers: 2, Texts: 2})
	FairForceRelease = New("fair_force_release", beside+fairForceRelease, Shape{Numbers: 1})
	FairInspect      = New("fair_inspect", beside+fairInspect, Shape{Numbers: 2, Texts: 2})
)

var readWriteCommon = take + beside + readWrite

// The operations on the read/write lock.
var (
	ReadWriteSet          = New("read_write_set", readWriteCommon+readWriteSet, Shape{Numbers: 2, Texts: 1})
	ReadWriteRelease      = New("read_write_release", readWriteCommon+readWriteRelease, Shape{Numbers: 1})
	ReadWriteRenew        = New("read_write_renew", readWriteCommon+readWriteRenew, Shape{Numbers: 1})
	ReadWriteYield        = New("read_write_yield", readWriteCommon+readWriteYield, Shape{Numbers: 2})
	ReadWriteForceRelease = New("read_write_force_release", readWriteCommon+readWriteForceRelease, Shape{Numbers: 1})
	ReadWriteInspect      = New("read_write_inspect", readWriteInspect, Shape{Numbers: 3, Texts: 2})
	Look                  = New("look", readWriteCommon+look, Shape{Numbers: 1})
)

// All lists every script, for tests and for loading them in advance.
var All = []*Script{
	Acquire, Release, Renew, Yield, ForceRelease, Inspect,
	FencedAcquire, Draw, QuorumAcquire, Memory, AcquireAll,
	FairQueue, FairForceRelease, FairInspect,
	ReadWriteSet, ReadWriteRelease, ReadWriteRenew, ReadWriteYield, ReadWriteForceRelease, ReadWriteInspect, Look,
}
