package redisio

import (
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestServerGone(t *testing.T) {
	s := redistest.Start(t)
	client := connect(t, s.URL())
	s.Kill(t)
	r := open(t, client)
	// The first calls may still meet the broken connection.
	redistest.Eventually(t, "a refused connection", func() bool {
		err := acquire(t, r, "k").Err
		return err != nil && err.Transient && !err.Unsure
	})
	s.Restart(t)
	redistest.Eventually(t, "the connection to be back", func() bool { return acquire(t, r, "k").Err == nil })
}

func TestLostReply(t *testing.T) {
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL())
	loss := p.DropRepliesTo(redistest.Script(scripts.Acquire.SHA), 1)
	key, r := redistest.Name(t), open(t, client)
	do(t, s, "SCRIPT", "LOAD", scripts.Acquire.Source)
	expect(t, "lost", acquire(t, r, key).Err, doubtful)
	loss.Wait(t)
	if owner, _ := s.Do(t, "HGET", key, "a").ToString(); owner != "1" {
		t.Error("the script has not run")
	}
	if reply := acquire(t, r, key); !reply.Nil {
		t.Errorf("sent again: %+v", reply)
	}
}

func TestSilentServer(t *testing.T) {
	s := redistest.Start(t)
	r := open(t, connect(t, s.URL()))
	s.Pause(t)
	in, start := newInbox(), time.Now()
	r.Run(Call{Script: scripts.Acquire, Keys: []string{"k"}, Args: []string{"a", "1", "30000"}, Deadline: start.Add(50 * time.Millisecond), To: in})
	err := in.await(t, 0).Err
	took := time.Since(start)
	s.Resume(t)
	expect(t, "silence", err, doubtful)
	if err.Unwrap() != errTimeout {
		t.Errorf("%v", err)
	}
	if took < 50*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestClosedClient(t *testing.T) {
	s := redistest.Shared(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL())
	r := open(t, client)
	do(t, s, "SCRIPT", "LOAD", scripts.Acquire.Source)
	loss := p.DropRepliesTo(redistest.Script(scripts.Acquire.SHA), 1, redistest.Silent)
	in := newInbox()
	r.Run(Call{Script: scripts.Acquire, Keys: []string{redistest.Name(t)}, Args: []string{"a", "1", "30000"}, Deadline: soon(), To: in})
	loss.Wait(t)
	client.Close()
	if err := in.await(t, 0).Err; err == nil || !err.Unsure {
		t.Errorf("the call under way: %v", err)
	}
	expect(t, "a call afterwards", acquire(t, r, redistest.Name(t)).Err, class{unsure: true, hint: "close the Lockkeeper system first"})
}
