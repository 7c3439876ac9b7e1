package backend

import (
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// client is one that is never asked anything but how it is set up.
type client struct {
	rueidis.Client
	mode rueidis.ClientMode
}

func (c client) Mode() rueidis.ClientMode { return c.mode }

func serverOf(mode rueidis.ClientMode) *Server {
	return NewServer(clock(0), redisio.New(client{mode: mode}, 0), Config{})
}

func standalone() *Server { return serverOf(rueidis.ClientModeStandalone) }

// One script takes what lies on one server, and in a cluster in one slot. A RedLock is by itself.
func TestBatches(t *testing.T) {
	one, two, cluster := standalone(), standalone(), serverOf(rueidis.ClientModeCluster)
	for what, test := range map[string]struct {
		parts []Part
		want  [][]int
	}{
		"one server":  {[]Part{{Server: one, Name: "a"}, {Server: one, Name: "b"}}, [][]int{{0, 1}}},
		"two servers": {[]Part{{Server: one, Name: "a"}, {Server: two, Name: "a"}, {Server: one, Name: "b"}}, [][]int{{0, 2}, {1}}},
		"a RedLock": {
			[]Part{{Server: one, Name: "a"}, {Server: one, Name: "b", Majority: []*Server{one, two}}, {Server: one, Name: "c"}}, [][]int{{0, 2}, {1}},
		},
		"a cluster": {[]Part{{Server: cluster, Name: "{x}1"}, {Server: cluster, Name: "{y}1"}, {Server: cluster, Name: "{x}2"}}, [][]int{{0, 2}, {1}}},
	} {
		if got := Batches(test.parts); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}
