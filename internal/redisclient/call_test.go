package redisclient

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Each reply has the format of its call, also if the call failed or shared a script with others.
func TestReply_HasTheFormatOfItsCall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r, in := New(redistest.Connect(t, s.URL()), time.Hour), newInbox()
	seq := 0
	call := func(deadline time.Time) Call {
		c := counted(in, "hash", seq, deadline)
		c.Format = uint8(seq + 1)
		seq++
		return c
	}
	r.Run(call(redistest.Soon()))
	r.Run(call(time.Time{})) // it is too late to be sent
	here := call(redistest.Soon())
	r.RunHere(t.Context(), &here)
	drawn := call(redistest.Soon())
	drawn.Script, drawn.Args = lua("return 2", number), nil
	drawn.Second = Second{Script: count, Key: "hash", Arg: "9"}
	r.Run(drawn)
	for _, key := range []string{held(t, s), held(t, s), redistest.Name(t)} {
		n := renewal(key, in, seq)
		n.Format = uint8(seq + 1)
		seq++
		r.Renew(n)
	}
	r.Close()
	r.Run(call(redistest.Soon())) // the Redis is closed
	for i, reply := range in.awaitAll(t, seq) {
		if int(reply.Format) != i+1 {
			t.Errorf("the reply to the call with the format %d: %+v", i+1, reply)
		}
	}
}
