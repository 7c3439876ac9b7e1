package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// call asks random grains, from some goroutines, until it is terminated. Every second request looks the grain up.
func (s settings) call(c *cluster.Cluster, terminated context.Context) {
	var running sync.WaitGroup
	var last atomic.Int64
	for range s.Callers {
		running.Go(func() {
			for terminated.Err() == nil {
				grain := fmt.Sprint("grain-", rand.N(s.Grains))
				n := s.Seq*perWorker + perWorker/2 + last.Add(1)
				if n%2 == 0 {
					c.PidCache.Remove(grain, "counter")
				}
				report("sent", grain, 0, n)
				if _, err := c.Request(grain, "counter", wrapperspb.Int64(n)); err != nil {
					report("failed", strings.ReplaceAll(err.Error(), " ", "_"), 0, n)
				} else {
					report("answered", grain, 0, n)
				}
			}
		})
	}
	running.Wait()
}
