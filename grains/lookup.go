package grains

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
)

// The pause between two tries to locate a grain doubles from firstPause to longestPause, minus a random part of up to a half.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

// askTimeout is how long a member may take to answer.
const askTimeout = time.Second

// get returns the PID of a grain, or nil if there is none within Config.Activation. A member that is asked for a grain starts
// it. The lookup waits itself, since its callers treat nil as a failure.
func (d *Directory) get(identity *cluster.ClusterIdentity) *actor.PID {
	if identity == nil || d.System() == nil || !utf8.ValidString(identity.GetKind()) || !utf8.ValidString(identity.GetIdentity()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Activation)
	defer cancel()
	failed := map[string]bool{} // the members that could not run it
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if pid := d.locate(ctx, identity, failed); pid != nil {
			return pid
		}
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-ctx.Done():
			return nil
		}
	}
}

// locate asks the member that is responsible for a grain, or if that is not known, one that may have it.
func (d *Directory) locate(ctx context.Context, identity *cluster.ClusterIdentity, failed map[string]bool) *actor.PID {
	entry, err := d.redis.entry(ctx, identity.AsKey())
	if err != nil {
		return nil
	}
	members := *d.view.Load()
	member, known := members[memberOf(entry)]
	if !known {
		var may []Member
		for _, m := range members {
			if slices.Contains(m.Kinds, identity.Kind) && !failed[m.ID] {
				may = append(may, m)
			}
		}
		if len(may) == 0 {
			clear(failed)
			d.lookSoon()
			return nil
		}
		member = d.cfg.Place(may, identity.Kind, identity.Identity)
	}
	if !known && entry != "" {
		d.lookSoon() // it may be that of a new member
	}
	pid := d.ask(ctx, member.Address, &cluster.ActivationRequest{ClusterIdentity: identity, RequestId: entry})
	if pid == nil {
		failed[member.ID] = true
		d.lookSoon()
	}
	return pid
}

// ask asks the activator of a member for a grain.
func (d *Directory) ask(ctx context.Context, address string, request *cluster.ActivationRequest) *actor.PID {
	deadline, _ := ctx.Deadline()
	timeout := min(askTimeout, time.Until(deadline))
	if timeout <= 0 {
		return nil
	}
	answer, err := d.cluster.ActorSystem.Root.RequestFuture(actor.NewPID(address, activatorName), request, timeout).Result()
	if response, ok := answer.(*cluster.ActivationResponse); ok && err == nil && !response.Failed {
		return response.Pid
	}
	return nil
}
