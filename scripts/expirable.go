package scripts

import _ "embed"

var (
	//go:embed common/expirable.lua
	expirable string
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
	ExpirableAcquire = script("expirable_acquire", number+once+expirable+expirableAcquire, Shape{Numbers: 2})
	ExpirableRelease = script("expirable_release", number+once+expirable+expirableRelease, Shape{Numbers: 2})
	ExpirableRenew   = script("expirable_renew", expirable+expirableRenew, Shape{Texts: 1})
	ExpirableSet     = script("expirable_set", number+once+expirable+expirableSet, Shape{Numbers: 1})
	ExpirableInspect = script("expirable_inspect", number+once+expirable+expirableInspect, Shape{Numbers: 3, Texts: 1})
)
