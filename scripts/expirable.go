package scripts

import _ "embed"

var (
	//go:embed common/expirable.lua
	expirable string
	//go:embed common/restore.lua
	restore string
	//go:embed expirable_acquire.lua
	expirableAcquire string
	//go:embed expirable_release.lua
	expirableRelease string
	//go:embed expirable_renew.lua
	expirableRenew string
	//go:embed expirable_set.lua
	expirableSet string
	//go:embed expirable_inspect.lua
	expirableInspect string
)

// The operations on the expirable semaphore.
var (
	ExpirableAcquire = script("expirable_acquire", onceCommon+expirable+otherKeys+expirableAcquire, Shape{Numbers: 2})
	ExpirableRelease = script("expirable_release", onceCommon+expirable+otherKeys+restore+expirableRelease, Shape{Numbers: 2})
	ExpirableRenew   = script("expirable_renew", expirable+expirableRenew, Shape{Texts: 1})
	ExpirableSet     = script("expirable_set", onceCommon+expirable+otherKeys+restore+presentMemory+expirableSet, Shape{Numbers: 1})
	ExpirableInspect = script("expirable_inspect", onceCommon+expirable+expirableInspect, Shape{Numbers: 3, Texts: 1})
)
