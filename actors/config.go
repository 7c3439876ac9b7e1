package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/protocol"
)

// Config is the configuration that the actors of a system share. Package lockkeeper fills in the
// defaults and validates it.
type Config struct {
	machine.Config
	// KeyPrefix is put before every lock's name.
	KeyPrefix string
	// Sharded says that the server is a cluster with sharded pub/sub, which is used.
	Sharded bool
	// WaiterTimeout is how long a fair lock's waiter keeps its place after its process's last
	// sign of life.
	WaiterTimeout time.Duration
	// Replicas is how many replicas must have a lease before it is trusted, and ReplicaTimeout how
	// long they may take.
	Replicas       int
	ReplicaTimeout time.Duration
	// Record is what the system says of its process in Redis; nil if it says nothing. The Client
	// and the times are filled in.
	Record *Record
	// Idle is how long an unused lock actor stays alive.
	Idle time.Duration
	// Middleware handles every request by message before its lock does; see middlewareActor.
	Middleware []actor.ReceiverMiddleware
	Logger     *slog.Logger
	// LongWait and LongHold are how long a wait and a hold last before they are logged; 0: never.
	LongWait, LongHold time.Duration
	// HoldStacks has holders keep their stacks; see Holder.
	HoldStacks bool
	// Meter may be nil; then nothing is measured.
	Meter metric.Meter
	// Tracer may be nil; then no spans are made.
	Tracer trace.Tracer
}

// Record is what a system says of its process; see protocol.Record.
type Record = protocol.Record
