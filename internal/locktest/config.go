package locktest

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Briefly lets what is left of a dead process end soon.
var Briefly = lockkeeper.Config{Watchdog: Watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: time.Second}

// NoPolling looks by itself after longer than a test takes.
var NoPolling = lockkeeper.Config{Poll: time.Minute, Watchdog: 2 * time.Minute}

// Soon is well below the poll bound of NoPolling, and much for a busy machine.
const Soon = 10 * time.Second

// Impatient soon resends what got no reply, far from the lease's end, and has no time for local hand-off.
var Impatient = lockkeeper.Config{CallTimeout: 300 * time.Millisecond, Poll: time.Minute, Watchdog: 2 * time.Minute, HandOffLimit: 1}

// Watchdog is long enough for a machine that does a lot besides.
const Watchdog = 5 * time.Second
