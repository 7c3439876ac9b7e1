package machine

import "time"

// Instant is a point in time: the time since the system started, on a clock that never goes
// backwards and counts the time the machine sleeps.
type Instant = time.Duration
