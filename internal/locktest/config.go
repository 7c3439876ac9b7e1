package locktest

import (
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

var Briefly = lockkeeper.Config{Watchdog: Watchdog, Poll: 300 * time.Millisecond, WaiterTimeout: time.Second}

// polling never happens within the time that a test takes.
var NoPolling = lockkeeper.Config{Poll: time.Minute, Watchdog: 2 * time.Minute}

// Soon is well below the poll bound of noPolling, and much for a busy machine.
const Soon = 10 * time.Second

// Impatient resends soon what has got no reply, and is far from the lease's end all
// the while. Its tenures are over at once.
var Impatient = lockkeeper.Config{CallTimeout: 100 * time.Millisecond, Poll: time.Minute, Watchdog: 2 * time.Minute, Tenure: 1}

// Watchdog is long enough for a machine that does a lot besides.
const Watchdog = 5 * time.Second
