package machine

const (
	// MaxExpired bounds the requests that one event refuses because their wait is over. If there are more, the next
	// Tick is due at once.
	MaxExpired = 1000
	// MaxPermits is the largest number of permits of a name; Redisson counts no further.
	MaxPermits = 1<<31 - 1
	// MaxTogether bounds the permits that are acquired together.
	MaxTogether = 1000
)
