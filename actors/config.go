package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockkeeper-go/lockkeeper/core"
)

// Config is what the actors of a system share. Package lockkeeper fills it in,
// with its defaults, and has checked it.
type Config struct {
	core.Config
	// KeyPrefix is put before every lock's name.
	KeyPrefix string
	// Silence is how long a fair lock's waiter that is not heard of keeps its place.
	Silence time.Duration
	// Idle is how long an unused lock actor stays.
	Idle time.Duration
	// Middleware is put around the handling of every request that comes by message; see front.
	Middleware []actor.ReceiverMiddleware
	Logger     *slog.Logger
	// Meter may be nil: nothing is measured then.
	Meter metric.Meter
}
