package redisio

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// A server that is away when the client is made is used as soon as it is there.
func TestConnectLater(t *testing.T) {
	s := redistest.Start(t)
	s.Kill(t)
	client, err := ConnectLater(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r, e := open(t, client), newEars()
	subs := subscribe(t, client, e)
	subs.Add("c")
	for range 3 {
		expect(t, "before the server is there", acquire(t, r, "k").Err, passing)
	}
	s.Restart(t)
	if reply := acquire(t, r, "k"); !reply.Nil {
		t.Errorf("the first call with the server there: %+v", reply)
	}
	e.awaitSubscribed(t, "c", 1)
	publish(t, s, "c")
	e.awaitHeard(t, "c", 1)
}

// A server that is there is connected to at once, and one that turns the client away is
// an error, as with Connect.
func TestConnectLaterToAServerThatIsThere(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "secret")
	client, err := ConnectLater("redis://:secret@" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if reply := acquire(t, open(t, client), "k"); !reply.Nil {
		t.Errorf("%+v", reply)
	}
	for url, want := range map[string]string{
		"redis://:wrong@" + s.Addr():       "WRONGPASS",
		"redis://host?retries=1":           "unknown option",
		"redis://host?master_set=m":        "single server",
		"redis://host:1?addr=other:1":      "single server",
		"redis://" + s.Addr() + "?db=1000": "NOAUTH",
	} {
		client, err := ConnectLater(url)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", url)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q is not in: %v", url, want, err)
		}
	}
}

// A server that accepts and then keeps silent costs no more than the dial timeout, and
// no more than its deadline a call; nor does it hold up the end.
func TestConnectLaterToASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	client, err := ConnectLater("redis://" + l.Addr().String() + "?dial_timeout=100ms")
	if err != nil {
		t.Fatal(err)
	}
	r, in := New(client, time.Millisecond), newInbox()
	r.Run(counted(in, "h", 0, time.Now().Add(100*time.Millisecond)))
	expect(t, "silence", in.await(t, 0).Err, doubtful)
	subs := r.NewSubscriptions(newEars())
	subs.Add("c")
	subs.Close()
	r.Close()
	client.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
