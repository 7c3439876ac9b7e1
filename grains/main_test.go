package grains

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) {
	var leaks []goleak.Option
	for _, function := range []string{
		// proto.actor's throttles of logs last for a minute.
		"github.com/asynkron/protoactor-go/cluster.(*Gossiper).StartGossiping.NewThrottle.func3.1",
		"github.com/asynkron/protoactor-go/cluster.NewGossipActor.NewThrottleWithLogger.func2.1",
		// Its gossip does not close connections that fail, as those to a node that has gone.
		"github.com/asynkron/protoactor-go/remote.(*endpointWriter).initialize",
		"google.golang.org/grpc.(*addrConn).resetTransport",
		"google.golang.org/grpc/internal/grpcsync.(*CallbackSerializer).run",
	} {
		leaks = append(leaks, goleak.IgnoreAnyFunction(function))
	}
	redistest.Main(m, leaks...)
}
