package grains

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"

	"github.com/lockkeeper-go/lockkeeper"
)

// term is one life of a member, from the grant of its lease until its last grain has stopped.
type term struct {
	member Member
	hold   *lockkeeper.Hold
	drain  time.Duration
	// ctx ends when the grains must no longer begin messages.
	ctx context.Context
	end context.CancelCauseFunc
}

// serves reports whether a message may be begun, that is, whether at least the drain is left for handling it. It looks
// at the clock, since the process may have been paused.
func (t *term) serves() bool { return t.ctx.Err() == nil && t.hold.Left() > t.drain }

// Term is the right of a grain to run, from its start to its stop. The zero value has ended.
type Term struct {
	token int64
	hold  *lockkeeper.Hold
	ctx   context.Context
}

// TermOf returns the term of the grain that handles a message. For an actor that is not a grain of a Directory, it
// returns a term that has ended.
func TermOf(ctx actor.Context) Term {
	if of, ok := extensionOf(ctx).(*extension); ok {
		return of.Term
	}
	return Term{}
}

// Token returns the fencing token of this activation. The token is higher than the tokens of all earlier activations of
// all grains of the cluster, so a store that compares tokens refuses the late write of an older activation. A restart
// of the grain by its supervisor keeps the token. The zero value has the token 0.
func (t Term) Token() int64 { return t.token }

// Valid reports whether no other activation of the grain can run at this moment; from Stopping on it is false. It only
// reads the clock.
func (t Term) Valid() bool { return t.ctx != nil && t.ctx.Err() == nil && t.hold.Valid() }

// Context returns a context that ends when the grain begins to stop, and Config.Drain before the end of its member's
// lease if the lease is not renewed. Use it for the work of the grain on other goroutines, and for calls that block.
func (t Term) Context() context.Context {
	if t.ctx == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errNoLease)
		return ctx
	}
	return t.ctx
}

var extensionID = ctxext.NextContextExtensionID()

// extension is the Term of a grain in its context.
type extension struct{ Term }

// ExtensionID implements ctxext.ContextExtension.
func (*extension) ExtensionID() ctxext.ContextExtensionID { return extensionID }

// extensionOf returns nil for a context that has no extensions.
func extensionOf(ctx actor.Context) (of ctxext.ContextExtension) {
	defer func() { _ = recover() }() // Get panics if there are too few extensions, or no context
	return ctx.Get(extensionID)
}
