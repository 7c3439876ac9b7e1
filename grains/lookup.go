package grains

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The pause between two tries to locate a grain doubles from firstPause to longestPause, minus a random part of up to a
// half.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 200 * time.Millisecond
)

const (
	// askTimeout is the time that a member may take to answer.
	askTimeout = time.Second
	// maxHops is the number of members that are asked without a pause, each named by the previous member.
	maxHops = 4
)

// get returns the PID of a grain, or nil if there is none within Config.Activation. A member that is asked for a grain
// starts the grain. The lookup itself waits, since its callers treat nil as a failure.
func (d *Directory) get(identity *cluster.ClusterIdentity) *actor.PID {
	if identity == nil || d.System() == nil || !utf8.ValidString(identity.GetKind()) || !utf8.ValidString(identity.GetIdentity()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Activation)
	defer cancel()
	s := search{d: d, identity: identity, failed: map[string]bool{}}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		for range maxHops {
			if pid, more := s.ask(ctx); pid != nil {
				return pid
			} else if !more {
				break
			}
		}
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-ctx.Done():
			return nil
		}
	}
}

// search is the search for a grain.
type search struct {
	d        *Directory
	identity *cluster.ClusterIdentity
	// entry is the entry of the grain in Redis; "" if it is not known.
	entry string
	// failed are the members that could not run the grain.
	failed map[string]bool
}

// ask asks the member that is responsible for the grain. If no such member is known, it asks the member that
// Config.Place selects. That member starts the grain, unless another member is responsible: then it answers with the
// entry of the grain, and more is true.
func (s *search) ask(ctx context.Context) (pid *actor.PID, more bool) {
	members := *s.d.view.Load()
	member, known := members[memberOf(s.entry)]
	if !known {
		may := s.d.candidates(s.identity.Kind, s.failed)
		if len(may) == 0 {
			clear(s.failed)
			s.d.lookSoon()
			return nil, false
		}
		member = s.d.cfg.Place(may, s.identity.Kind, s.identity.Identity)
		if s.entry != "" {
			s.d.lookSoon() // the entry may name a new member
		}
	}
	deadline, _ := ctx.Deadline()
	timeout := max(min(askTimeout, time.Until(deadline)), time.Nanosecond)
	request := &cluster.ActivationRequest{ClusterIdentity: s.identity, RequestId: s.entry}
	answer, err := s.d.cluster.ActorSystem.Root.RequestFuture(actor.NewPID(member.Address, activatorName), request, timeout).Result()
	switch {
	case err == nil:
		s.d.silent.Delete(member.ID)
	case timeout == askTimeout:
		s.d.silent.Store(member.ID, time.Now())
	}
	switch answer := answer.(type) {
	case *cluster.ActivationResponse:
		if err == nil && !answer.Failed {
			return answer.Pid, false
		}
	case *wrapperspb.StringValue:
		s.entry = answer.Value
		return nil, true
	}
	s.failed[member.ID] = true
	s.d.lookSoon()
	return nil, false
}

// candidates returns the members that may run a grain and have not failed. Members that have not answered lately, and
// may be dead, are among them only if there are no others.
func (d *Directory) candidates(kind string, failed map[string]bool) []Member {
	var may, silent []Member
	for _, m := range *d.view.Load() {
		if !slices.Contains(m.Kinds, kind) || failed[m.ID] {
			continue
		}
		if since, is := d.silent.Load(m.ID); is && time.Since(since.(time.Time)) < d.cfg.Locks.Watchdog {
			silent = append(silent, m)
		} else {
			may = append(may, m)
		}
	}
	if len(may) == 0 {
		return silent
	}
	return may
}

// byHash is the default of Config.Place. Its choice is the same in all processes that see the same members, and changes
// for few grains when a member comes or goes.
func byHash(members []Member, kind, identity string) Member {
	score := func(m Member) []byte {
		sum := sha256.Sum256([]byte(m.ID + "/" + kind + "/" + identity))
		return sum[:]
	}
	return slices.MaxFunc(members, func(a, b Member) int { return bytes.Compare(score(a), score(b)) })
}
