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

// All lists every script, for tests and for loading them in advance.
var All = []*Script{Acquire, Release, Renew, Yield, ForceRelease, Inspect}
