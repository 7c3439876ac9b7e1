package redisio

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// The error says what is wrong, but nothing of what may be a password, however it is written;
// see FuzzPassword.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                     "invalid URL scheme",
		"http://host:6379":                     "invalid URL scheme: http",
		"redis://host:port":                    "invalid port",
		"redis://host?dial_timeout=1":          "invalid dial timeout",
		"redis://user:p@host:port":             "redis[s]://[user",
		"redis://host?retries=3":               `unknown option "retries"`,
		"redis://:p@host?retries=3":            "the options are addr, client_cache, client_name, db, dial_timeout, master_set, max_retries, protocol, skip_verify, write_timeout",
		"redis://host?max_retries=3":           "max_retries can only be 0",
		"redis://host?protocol=4":              "protocol can only be 2 or 3",
		"redis://host?skip_verify=true":        "skip_verify is for rediss",
		"redis://host?db=%zz":                  "invalid URL escape",
		"redis://127.0.0.1:1":                  "cannot connect to Redis at [127.0.0.1:1]",
		"redis://127.0.0.1:1?addr=127.0.0.1:2": "127.0.0.1:2",

		"user:s3cret@host:6379":                       "not shown",
		"redis://user:s3cret@127.0.0.1:1":             "cannot connect",
		"redis://user:p@host:6379?max_retries=s3cret": "not shown",
		"redis://user:a@127.0.0.1:1#s3cret@host:6379": "not shown",
		"redis://user:s3cret@host:6379\x00":           "not shown",
		"redis://user:@s3cret#%40host:6379":           "not shown",
	} {
		client, err := Connect(url)
		switch {
		case err == nil:
			client.Close()
			t.Errorf("%q: no error", url)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: %q is not in: %v", url, want, err)
		case url != "" && strings.Contains(err.Error(), url), strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%q: quoted in: %v", url, err)
		}
	}
}

// A server that turns the client away is an error, also if it would be connected to later.
func TestConnectRefusals(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "s3cret")
	crowded := redistest.Start(t, "--maxclients", "1")
	do(t, crowded, "PING") // takes the only place
	for _, test := range []struct {
		connect func(string) (rueidis.Client, error)
		url     string
		words   string
		want    Error
	}{
		{Connect, "redis://:s3wrong@" + locked.Addr(), "WRONGPASS", hinted("check the user")},
		{Connect, "redis://nobody:s3cret@" + locked.Addr(), "WRONGPASS", hinted("check the user")},
		{Connect, locked.URL(), "NOAUTH", hinted("user name and password")},
		{Connect, redistest.Shared(t).URL() + "/999", "DB index is out of range", lasting},
		{Connect, "redis://127.0.0.1:1", "connection refused", passing},
		{Connect, crowded.URL(), "", passing},
		{ConnectLater, "redis://:s3wrong@" + locked.Addr(), "WRONGPASS", hinted("check the user")},
		{ConnectLater, locked.URL() + "?db=1000", "NOAUTH", hinted("user name and password")},
		{ConnectLater, "redis://host?retries=1", "unknown option", lasting},
		{ConnectLater, "redis://host?master_set=m", "single server", lasting},
		{ConnectLater, "redis://host:1?addr=other:1", "single server", lasting},
	} {
		start := time.Now()
		client, err := test.connect(test.url)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", test.url)
			continue
		}
		var sorted *Error
		if errors.As(err, &sorted) && test.words != "" {
			expect(t, test.url, sorted, test.want)
		} else if test.words == "" && !Sort(err).Transient { // the connection may be cut before the words are read
			t.Errorf("%s: %v", test.url, err)
		}
		if text := err.Error(); !strings.Contains(text, test.words) || strings.Contains(text, "s3") {
			t.Errorf("%s: %v", test.url, err)
		}
		took(t, start, 0, redistest.Limit/2)
	}
}

// A server that accepts and then keeps silent costs no more than the dial timeout.
func TestConnectToASilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	url, start := "redis://"+l.Addr().String()+"?dial_timeout=100ms", time.Now()
	if _, err := Connect(url); err == nil || !Sort(err).Transient {
		t.Errorf("connecting: %v", err)
	}
	client, err := ConnectLater(url)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	took(t, start, 0, 5*time.Second)
}

func TestConnectOptions(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "p@ss/word")
	for _, connect := range []func(string) (rueidis.Client, error){Connect, ConnectLater} {
		client, err := connect("redis://:p%40ss%2Fword@" + s.Addr() + "/3?client_name=orders")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		if reply := acquire(t, open(t, client), redistest.Name(t)); !reply.Nil {
			t.Errorf("%+v", reply)
		}
		clients, _ := s.Do(t, "CLIENT", "LIST").ToString()
		if _, line, _ := strings.Cut(clients, " name=orders "); !strings.Contains(line, " db=3 ") {
			t.Errorf("no client of that name in database 3:\n%s", clients)
		}
	}
	if calls := s.Calls(t); calls["client|tracking"] != 0 {
		t.Error("the client-side cache is on")
	}
}

// A server that is away when the client is made is used as soon as it is there.
func TestConnectLater(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill(t)
	client, err := ConnectLater(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r := open(t, client)
	subs, e := subscribe(t, client)
	subs.Add("c")
	for range 3 {
		expect(t, "before the server is there", acquire(t, r, "k").Err, passing)
	}
	s.Restart(t)
	if reply := acquire(t, r, "k"); !reply.Nil {
		t.Errorf("the first call with the server there: %+v", reply)
	}
	e.await(t, "subscribed c", 1)
	hears(t, s, e, "c")
}

// Not even a command that only reads is sent again by the client.
func TestConnectDisablesRetries(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL())
	loss := p.DropRepliesTo(redistest.Command("GET"), 1)
	err := client.Do(t.Context(), client.B().Get().Key("k").Build()).Error()
	loss.Wait(t)
	expect(t, "GET", Sort(err), doubtful)
	if n := s.Calls(t)["get"]; n != 1 {
		t.Errorf("GET was sent %d times", n)
	}
}
