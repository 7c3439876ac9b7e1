package actors

import (
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/alarm"
	"github.com/lockkeeper-go/lockkeeper/internal/backend"
	"github.com/lockkeeper-go/lockkeeper/internal/kinds"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/internal/request"
	"github.com/lockkeeper-go/lockkeeper/messages"
)

type client struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (c client) Mode() rueidis.ClientMode { return c.mode }

// unstarted is a system without actors, whose client is only asked how it is set up.
func unstarted(id string, mode rueidis.ClientMode) *Runtime {
	r := &Runtime{id: id, redis: redisclient.New(client{mode: mode}, 0)}
	r.server = backend.NewServer(r, r.redis, backend.Config{User: r})
	r.kinds, r.clocks = kinds.New(kinds.Settings{ID: id, Server: r.server, Config: &r.cfg.Config}), alarm.New(r.Now, r.redis.InRound)
	r.rules = request.Rules{System: r, ID: id, Cluster: r.redis.Cluster(), RedLock: r.redSystems}
	return r
}

func TestMembers_AreTakenByName(t *testing.T) {
	one, two := unstarted("1", rueidis.ClientModeStandalone), unstarted("2", rueidis.ClientModeStandalone)
	given := []request.Member{
		{System: two, Name: "b", Kind: messages.Kind_KIND_FENCED}, {System: one, Name: "c"},
		{System: two, Name: "a", Kind: messages.Kind_KIND_FENCED}, {System: one, Name: "b", Kind: messages.Kind_KIND_FENCED},
	}
	first, err := request.NewMembers(given)
	if err != nil {
		t.Fatal(err)
	}
	if first.String() != "a + b + b + c" || first.Home() != two {
		t.Errorf("%v, at home in %s", first, first.Home().Rules().ID)
	}
	// They are taken by name, and so are their tokens.
	for _, test := range []struct{ drawn, want []int64 }{
		{[]int64{10, 20, 30}, []int64{30, 0, 10, 20}}, {nil, []int64{0, 0, 0, 0}},
		{[]int64{10}, []int64{0, 0, 10, 0}}, {[]int64{10, 20, 30, 40, 50}, []int64{30, 0, 10, 20}}, // no script of ours gives such
	} {
		if got := first.Tokens(test.drawn); !slices.Equal(got, test.want) {
			t.Errorf("of %v: tokens %v, want %v", test.drawn, got, test.want)
		}
	}
	for range 10 {
		given = append(given[1:], given[0])
		again, err := request.NewMembers(given)
		if err != nil {
			t.Fatal(err)
		}
		if again.ID() != first.ID() {
			t.Errorf("in another order: %q, want %q", again.ID(), first.ID())
		}
	}
}

// What differs in any member is another lock, also when names look like separators.
func TestMembers_AnyDifferenceMakesAnotherLock(t *testing.T) {
	one, two := unstarted("1", rueidis.ClientModeStandalone), unstarted("2", rueidis.ClientModeStandalone)
	known := map[string]string{}
	for what, members := range map[string][]request.Member{
		"two":          {{System: one, Name: "a"}, {System: one, Name: "b"}},
		"another kind": {{System: one, Name: "a"}, {System: one, Name: "b", Kind: messages.Kind_KIND_FAIR}},
		"another mode": {{System: one, Name: "a", Kind: messages.Kind_KIND_READ_WRITE}, {System: one, Name: "b"}},
		"shared": {
			{System: one, Name: "a", Kind: messages.Kind_KIND_READ_WRITE, Mode: messages.Mode_MODE_SHARED}, {System: one, Name: "b"},
		},
		"another system":   {{System: one, Name: "a"}, {System: two, Name: "b"}},
		"one of that look": {{System: one, Name: `a";1 0 0 "b`}},
		"one":              {{System: one, Name: "a"}},
	} {
		m, err := request.NewMembers(members)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := known[m.ID()]; taken {
			t.Errorf("%s has the id of %s: %q", what, other, m.ID())
		}
		known[m.ID()] = what
	}
}
