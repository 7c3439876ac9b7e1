package redisclient

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// If a server of a cluster refuses every command, even PING, calls that wait for replicas are refused, without
// a panic.
func TestReplicas_RefuseInAClusterThatCannotSave(t *testing.T) {
	t.Parallel()
	s := redistest.Cluster(t, 1)[0]
	r, in := open(t, redistest.ConnectWith(t, s.Addr(), rueidis.ClientOption{AlwaysPipelining: true})), newInbox()
	r.AwaitReplicas(1, time.Millisecond)
	for n := range 3 {
		if n == 1 {
			s.FailToSave(t)
		}
		call := counted(in, "h", n, redistest.Soon())
		call.Confirm = true
		r.Run(call)
		if reply := in.await(t, uint64(n)); (reply.Err == nil) != (n == 0) || reply.Unconfirmed == nil {
			t.Errorf("call %d: %+v", n, reply)
		}
	}
}

// Scripts that the server does not know are repeated together, with one WAIT. Watch.Reached reports that no
// replica has confirmed them.
func TestReplicas_ConfirmUnknownScriptsTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client, in := redistest.Connect(t, s.URL()), newInbox()
	p := newPool(client, &reconnector{client: client}, false)
	p.replicas, p.replicaTimeout = 1, time.Millisecond
	var reported []*redisio.Error
	p.watch.Reached = func(_ string, err *redisio.Error) { reported = append(reported, err) }
	calls := make([]Call, 4)
	for i := range calls {
		calls[i] = counted(in, "h", i, redistest.Soon())
		calls[i].Confirm = i > 0
	}
	p.run(calls)
	for i, reply := range in.awaitAll(t, len(calls)) {
		if reply.Err != nil || reply.N[0] != int64(i) || reply.Unconfirmed == nil || (reported[i] == reply.Unconfirmed) != (i > 0) {
			t.Errorf("call %d: %+v, and %v was reported", i, reply, reported[i])
		}
	}
	if n := s.Calls(t)["wait"]; n != 2 {
		t.Errorf("waited for replicas %d times", n)
	}
}

// A server that the client does not know becomes the master: calls are refused until the client has discovered
// it, and then confirmed by the former master.
func TestReplicas_RefuseUntilANewMasterIsKnown(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	r, in, n := open(t, redistest.Connect(t, servers[0].URL())), newInbox(), 0
	r.AwaitReplicas(1, 10*time.Millisecond)
	confirmed := func() bool {
		call := counted(in, "{b}", n, redistest.Soon()) // a slot of the first server's
		call.Confirm = true
		r.Run(call)
		reply := in.await(t, uint64(n))
		if n++; reply.Err != nil && !reply.Err.Transient {
			t.Error(reply.Err)
		}
		return reply.Err == nil && reply.Unconfirmed == nil
	}
	if confirmed() {
		t.Error("confirmed by no replica")
	}
	replica := redistest.ClusterReplica(t, servers)
	replica.MustDo(t, "CLUSTER", "FAILOVER")
	replica.AwaitMaster(t)
	redistest.Eventually(t, "the former master to confirm", confirmed)
	if ran := runs(t, replica, "{b}"); ran[strconv.Itoa(n-1)] != 1 {
		t.Errorf("they ran %v times", ran)
	}
}
