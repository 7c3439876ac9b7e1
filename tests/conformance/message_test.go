package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lockkeeper-go/lockkeeper/conformance"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

// mailed is a process whose locks are asked for by message. Every holder is an actor.
type mailed struct{ *process }

// holder is an actor that asks for a lock.
type holder struct {
	process *process
	lock    *messages.Lock
	pid     *actor.PID
	answers chan proto.Message
	lost    chan struct{}
	once    sync.Once
}

func (m *mailed) holder(lock string) *holder {
	h := &holder{process: m.process, lock: m.kind.message(lock), answers: make(chan proto.Message, 16), lost: make(chan struct{})}
	h.pid = m.actors.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch message := c.Message().(type) {
		case *messages.LeaseLost:
			h.once.Do(func() { close(h.lost) })
		case *messages.Cancelled, *messages.LeaseAtRisk:
		case proto.Message:
			h.answers <- message
		}
	}))
	return h
}

func (h *holder) send(m proto.Message) {
	h.process.actors.Root.RequestWithCustomSender(h.process.home.Guardian(), m, h.pid)
}

// Acquire implements conformance.Client.
func (m *mailed) Acquire(ctx context.Context, lock string, r conformance.Request) (conformance.Hold, error) {
	return m.holder(lock).acquire(ctx, nil, r)
}

// AcquireUntil implements conformance.Mortal.
func (m *mailed) AcquireUntil(ctx context.Context, death <-chan struct{}, lock string, r conformance.Request) (conformance.Hold, error) {
	h := m.holder(lock)
	go func() {
		<-death
		m.actors.Root.Stop(h.pid)
	}()
	return h.acquire(ctx, death, r)
}

var errDead = errors.New("the holder is dead")

func (h *holder) acquire(ctx context.Context, death <-chan struct{}, r conformance.Request) (conformance.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request := &messages.Acquire{Lock: h.lock, NoReentry: h.process.kind.once}
	if r.Lease != 0 {
		request.Lease = durationpb.New(r.Lease)
	}
	if r.Wait != 0 {
		request.Wait = durationpb.New(r.Wait)
	}
	if r.Try {
		request.Wait = durationpb.New(0)
	}
	h.send(request)
	select {
	case answer := <-h.answers:
		return h.granted(answer)
	case <-death:
		return nil, errDead
	case <-ctx.Done():
		h.send(&messages.Cancel{Lock: h.lock})
	}
	hold, err := h.granted(<-h.answers)
	if err != nil {
		return nil, ctx.Err()
	}
	return hold, nil
}

func (h *holder) granted(answer proto.Message) (conformance.Hold, error) {
	switch m := answer.(type) {
	case *messages.Acquired:
		hold := &answered{holder: h, id: m.HoldId, count: int(m.HoldCount)}
		switch {
		case len(m.MemberTokens) > 0:
			return &tokened{hold, m.MemberTokens}, nil
		case h.lock.Kind == messages.Kind_KIND_FENCED:
			return &tokened{hold, []int64{m.Token}}, nil
		}
		return hold, nil
	case *messages.NotAcquired:
		return nil, reasoned(m.Reason, m.Detail)
	case *actor.DeadLetterResponse: // Close has stopped the guardian
		return nil, conformance.ErrClosed
	}
	return nil, fmt.Errorf("answered %T{%v}", answer, answer)
}

func reasoned(reason messages.Reason, detail string) error {
	err := fmt.Errorf("%v: %s", reason, detail)
	all := map[messages.Reason]error{
		messages.Reason_REASON_HELD:        conformance.ErrHeld,
		messages.Reason_REASON_TIMED_OUT:   conformance.ErrTimeout,
		messages.Reason_REASON_CLOSED:      conformance.ErrClosed,
		messages.Reason_REASON_REENTRY:     conformance.ErrReentry,
		messages.Reason_REASON_INVALID:     conformance.ErrInvalid,
		messages.Reason_REASON_LOST:        conformance.ErrLost,
		messages.Reason_REASON_NOT_HELD:    conformance.ErrNotHeld,
		messages.Reason_REASON_UNAVAILABLE: conformance.ErrUnavailable,
	}
	return errors.Join(err, all[reason])
}

// answered is a hold by message.
type answered struct {
	*holder
	id    string
	count int
}

// tokened is one with tokens.
type tokened struct {
	*answered
	tokens []int64
}

// Tokens implements conformance.Tokened.
func (t *tokened) Tokens() []int64 { return t.tokens }

// Release implements conformance.Hold.
func (a *answered) Release(ctx context.Context) error {
	a.send(&messages.Release{Lock: a.holder.lock, HoldId: a.id})
	select {
	case answer := <-a.answers:
		switch m := answer.(type) {
		case *messages.Released:
			return nil
		case *messages.NotReleased:
			return reasoned(m.Reason, m.Detail)
		case *actor.DeadLetterResponse: // Close has stopped the guardian
			return conformance.ErrClosed
		}
		return fmt.Errorf("answered %T{%v}", answer, answer)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Lost implements conformance.Hold.
func (a *answered) Lost() <-chan struct{} { return a.lost }

// Reenter implements conformance.Reenterer.
func (a *answered) Reenter(ctx context.Context, r conformance.Request) (conformance.Hold, error) {
	return a.acquire(ctx, nil, r)
}

// Count implements conformance.Reenterer.
func (a *answered) Count() int { return a.count }
