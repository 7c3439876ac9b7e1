package redisio

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// No error may quote the password, nor a part of it, whatever is wrong with the URL
// and however the password is written.
func TestConnectErrorsKeepThePassword(t *testing.T) {
	for _, url := range []string{
		"redis://user:s3cret@host:port",
		"redis://user:s3cret@host:6379/x",
		"redis://user:s3cret@host:6379/1/2",
		"redis://user:s3cret@host:6379?db=x",
		"redis://user:s3cret@host:6379?dial_timeout=x",
		"http://user:s3cret@host:6379",
		"user:s3cret@host:6379",
		"://user:s3cret@host:6379",
		"redis://user:s3cret@ho st:6379",
		"redis://user:s3cret@host:6379\x00",
		"redis://user:%s3cret@host:6379",
		"redis://user:s3/cret@host:6379",
		"redis://user:12/s3cret@host:6379",
		"redis://user:s3#cret@host:6379",
		"redis://:12#s3cret@127.0.0.1:1",
		"redis://user:s3?cret@host:6379",
		"redis://:12?s3cret@127.0.0.1:1",
		"redis://user:a@s3/cret@host:6379",
		"redis://user:a@127.0.0.1:1#s3cret@host:6379",
		"redis://user:a@127.0.0.1:1?s3cret@host:6379",
		"redis://user:a@s3cret#b@127.0.0.1:1",
		"redis://user:a@s3cret?b@127.0.0.1:1",
		"redis://user:a@s3cret/b@127.0.0.1:1",
		"redis://user:s3cret@[::1",
		"unix://user:s3/cret@/socket",
		"unix://user:12/s3cret@/socket",
		"redis://user:s3cret@127.0.0.1:1",
		"redis://user:p@host:6379?s3cret=1",
		"redis://user:p@host:6379?max_retries=s3cret",
		"redis://host:6379?x%40s3cret",
	} {
		client, err := Connect(url)
		if err == nil {
			client.Close()
			t.Errorf("%q: no error", url)
		} else if text := err.Error(); strings.Contains(text, "s3") || strings.Contains(text, "cret") {
			t.Errorf("%q: the error tells the password: %v", url, err)
		}
	}
}

// Where no password can be in the way, the error says what is wrong.
func TestConnectErrorsSayWhatIsWrong(t *testing.T) {
	for url, want := range map[string]string{
		"":                                     "invalid URL scheme",
		"localhost:6379":                       "scheme",
		"http://host:6379":                     "invalid URL scheme: http",
		"redis://host:port":                    "invalid port",
		"redis://host/x":                       `invalid database number: "x"`,
		"redis://host?dial_timeout=1":          "invalid dial timeout",
		"redis://user:p@host:port":             "redis[s]://[user",
		"redis://host?retries=3":               `unknown option "retries"`,
		"redis://host?db=1&DB=2":               `unknown option "DB"`,
		"redis://:p@host?retries=3":            "the options are addr, client_cache, client_name, db, dial_timeout, master_set, max_retries, protocol, skip_verify, write_timeout",
		"redis://host?max_retries=3":           "max_retries can only be 0",
		"redis://host?protocol=4":              "protocol can only be 2 or 3",
		"redis://host?skip_verify=true":        "skip_verify is for rediss",
		"redis://host?db=%zz":                  "invalid URL escape",
		"redis://user:p/w@host:6379":           "percent-encoded",
		"redis://user:p@host/x":                "/database number",
		"redis://127.0.0.1:1":                  "cannot connect to Redis at [127.0.0.1:1]",
		"redis://127.0.0.1:1?addr=127.0.0.1:2": "127.0.0.1:2",
	} {
		client, err := Connect(url)
		if err == nil {
			client.Close()
			t.Errorf("%q: no error", url)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q is not in: %v", url, want, err)
		} else if url != "" && strings.Contains(err.Error(), url) {
			t.Errorf("%q: quoted in: %v", url, err)
		}
	}
}

func TestConnectRefusals(t *testing.T) {
	locked := redistest.Start(t, "--requirepass", "s3cret")
	open := redistest.Shared(t)
	for name, test := range map[string]struct {
		url       string
		words     string
		transient bool
	}{
		"wrong password": {"redis://:s3wrong@" + locked.Addr(), "WRONGPASS", false},
		"wrong user":     {"redis://nobody:s3cret@" + locked.Addr(), "WRONGPASS", false},
		"no password":    {locked.URL(), "NOAUTH", false},
		"bad database":   {open.URL() + "/999", "DB index is out of range", false},
		"no server":      {"redis://127.0.0.1:1", "connection refused", true},
	} {
		start := time.Now()
		client, err := Connect(test.url)
		if err == nil {
			client.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		var sorted *Error
		if !errors.As(err, &sorted) || sorted.Transient != test.transient || sorted.Unsure {
			t.Errorf("%s: sorted as %+v", name, sorted)
		}
		if text := err.Error(); !strings.Contains(text, test.words) || strings.Contains(text, "s3") {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > redistest.Limit/2 {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// A server that accepts and then keeps silent costs no more than the dial timeout.
func TestConnectToASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	client, err := Connect("redis://" + l.Addr().String() + "?dial_timeout=100ms")
	if err == nil {
		client.Close()
		t.Fatal("connected")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if sorted := Sort(err); !sorted.Transient {
		t.Errorf("sorted as %+v: %v", sorted, err)
	}
}

func TestConnectOptions(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "p@ss/word")
	client := connect(t, "redis://:p%40ss%2Fword@"+s.Addr()+"/3?client_name=orders")
	if err := client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	var line string
	clients, _ := s.Do(t, "CLIENT", "LIST").ToString()
	for candidate := range strings.Lines(clients) {
		if strings.Contains(candidate, " name=orders ") {
			line = candidate
		}
	}
	if !strings.Contains(line, " db=3 ") {
		t.Errorf("no client of that name in database 3:\n%s", clients)
	}
	if calls := s.Calls(t); calls["client|tracking"] != 0 {
		t.Error("the client-side cache is on")
	}
}

// Not even a command that only reads is sent again by the client.
func TestConnectDisablesRetries(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL())
	loss := p.DropRepliesTo(redistest.Command("GET"), 1)
	err := client.Do(t.Context(), client.B().Get().Key("k").Build()).Error()
	loss.Wait(t)
	if sorted := Sort(err); sorted == nil || !sorted.Unsure {
		t.Errorf("GET whose reply was lost: %v", err)
	}
	if n := s.Calls(t)["get"]; n != 1 {
		t.Errorf("sent %d times", n)
	}
}
