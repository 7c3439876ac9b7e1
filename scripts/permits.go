package scripts

import _ "embed"

var (
	//go:embed expirable.lua
	permits string
	//go:embed expirable_acquire.lua
	permitsAcquire string
	//go:embed expirable_release.lua
	permitsRelease string
	//go:embed expirable_renew.lua
	permitsRenew string
	//go:embed expirable_set.lua
	permitsSet string
	//go:embed expirable_inspect.lua
	permitsInspect string
)

// The operations on permits that expire.
var (
	PermitsAcquire = script("permits_acquire", number+once+permits+permitsAcquire, Shape{Numbers: 2})
	PermitsRelease = script("permits_release", number+once+permits+permitsRelease, Shape{Numbers: 2})
	PermitsRenew   = script("permits_renew", permits+permitsRenew, Shape{Texts: 1})
	PermitsSet     = script("permits_set", number+once+permits+permitsSet, Shape{Numbers: 1})
	PermitsInspect = script("permits_inspect", number+once+permits+permitsInspect, Shape{Numbers: 3, Texts: 1})
)
