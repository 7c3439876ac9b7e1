package lockkeeper

import (
	"context"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// holder is a Hold as request.Holder: the methods that lock actors call.
type holder Hold

var _ request.Holder = (*holder)(nil)

// holdOf returns the Hold of a holder, or nil if the lock was acquired by message.
func holdOf(h request.Holder) *Hold {
	if h, ok := h.(*holder); ok {
		return (*Hold)(h)
	}
	return nil
}

// LeaseLost implements request.Holder.
func (h *holder) LeaseLost(reason machine.Reason, detail string) {
	(*Hold)(h).lose(lostError(h.lock.kind, h.lock.Name(), messages.Reason(reason), detail))
}

// LeaseAtRisk implements request.Holder.
func (h *holder) LeaseAtRisk(until machine.Instant, _ string) {
	left := max(until-h.lock.runtime.Now(), 0)
	for _, hold := range (*Hold)(h).tree() {
		if s := hold.rare; s != nil && s.onRisk != nil && hold.active() {
			h.lock.runtime.CallHost("the function of WithAtRisk", func() { s.onRisk(left) })
		}
	}
}

// Bounded implements request.Holder.
func (h *holder) Bounded(bound machine.Instant) {
	h.bound.Store(int64(bound))
	for _, hold := range (*Hold)(h).tree() {
		if hold.rare != nil && hold.rare.endChanged != nil {
			select {
			case hold.rare.endChanged <- struct{}{}:
			default:
			}
		}
	}
}

// Stack implements request.Holder.
func (h *holder) Stack() []uintptr {
	if h.rare == nil {
		return nil
	}
	return h.rare.stack
}

// Parent implements request.Holder.
func (h *holder) Parent() context.Context { return h.parent }

// releaser is a holder that is being released. Its Parent is the context of the release, for spans.
type releaser struct {
	*holder
	within context.Context
}

// Parent implements request.Holder.
func (r releaser) Parent() context.Context { return r.within }
