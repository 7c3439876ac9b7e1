package main

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == driveVerb { // the test binary is the Go driver, too
		os.Exit(drive(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// rueidis sleeps out a second after a connect that failed.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// TestInterop runs the program with -quick, for the plain lock and the synchronizers, with the
// Redisson of java/pom.xml. build/interop.sh runs the other kinds, and more rounds.
func TestInterop(t *testing.T) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Log("NOTHING IS TESTED AGAINST REDISSON HERE")
			t.Skipf("the tests against Redisson need a JDK (17 or later) and Maven (3.8 or later) on PATH: %v", err)
		}
	}
	server := redistest.Start(t) // unlike the program's own, it ends with the test
	var reds []string
	for range 3 {
		reds = append(reds, redistest.Start(t).URL())
	}
	var stdout, stderr bytes.Buffer
	code := run([]string{"-quick", "-kind", "plain", "-kind", "semaphore", "-kind", "permits", "-kind", "latch", "-redis", server.URL(), "-red", strings.Join(reds, ",")}, &stdout, &stderr)
	t.Logf("\n%s%s", &stderr, &stdout)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want := 1 + 2 // the leftovers, and the killed holders
	count := func(cases []testcase, k kind) {
		for _, a := range cases {
			if a.applies == nil || a.applies(k) {
				if want++; !a.bothSides {
					want++
				}
			}
		}
	}
	count(slices.Concat(sequential, parallel), plainKind)
	for _, k := range kinds {
		if k.synchronizes() {
			count(synchronizerCases, k)
		}
	}
	if rows := strings.Count(stdout.String(), " ok "); rows != want {
		t.Errorf("%d rows are ok, want %d", rows, want)
	}
	for _, key := range server.Keys(t, "*") {
		if !strings.HasPrefix(key, "lockkeeper_calls:") { // which expire
			t.Errorf("left in Redis: %q", key)
		}
	}
}

// The Go driver serves the protocol of java/README.md.
func TestGoDriver(t *testing.T) {
	server, raw := redistest.Shared(t), redistest.Name(t)+" ü"
	name := url.PathEscape(raw)
	in := strings.NewReader(strings.ReplaceAll(`1 hello thread=a
2 lock kind=plain name=NAME thread=a
3 lock kind=plain name=NAME thread=a
4 count kind=plain name=NAME thread=a
5 unlock kind=plain name=NAME thread=a
6 inspect kind=plain name=NAME thread=a
7 unlock kind=plain name=NAME thread=a
8 unlock kind=plain name=NAME thread=a
9 trylock kind=fast name=NAME thread=a
10 trylock kind=plain name=NAME thread=a wait=soon
11 dance kind=plain name=NAME thread=a
12 lock kind=plain name=NAME thread=a lease=50
13 lost kind=plain name=NAME thread=a
14 unlock kind=plain name=NAME thread=a
15 lock kind=write name=NAMErw thread=a
16 lock kind=read name=NAMErw thread=a
17 unlock kind=write name=NAMErw thread=a
18 inspect kind=read name=NAMErw thread=a
19 unlock kind=read name=NAMErw thread=a
20 multilock op=lock names=NAMEa,NAMEb kinds=fenced,fair thread=a
21 multilock op=count names=NAMEa,NAMEb kinds=fenced,fair thread=a
22 inspect kind=fair name=NAMEb thread=a
23 multilock op=unlock names=NAMEa,NAMEb kinds=fenced,fair thread=a
24 lock kind=fenced name=NAMEa thread=a
25 unlock kind=fenced name=NAMEa thread=a
26 redlock op=lock names=NAME,NAME,NAME thread=a
27 peek kind=read name=NAMErw key=NAMEkey rounds=2 thread=a
30 semaphore op=set name=NAMEs n=2 thread=a
31 semaphore op=acquire name=NAMEs thread=a
32 semaphore op=tryacquire name=NAMEs n=2 thread=a
33 semaphore op=drain name=NAMEs thread=a
34 semaphore op=dance name=NAMEs thread=a
35 latch op=set name=NAMEl n=2 thread=a
36 latch op=down name=NAMEl n=2 thread=a
37 latch op=wait name=NAMEl wait=20000 thread=a
38 permits op=set name=NAMEp n=1 thread=a
39 permits op=acquire name=NAMEp lease=60000 thread=a
40 permits op=tryacquire name=NAMEp thread=a
41 permits op=release id=nonsense name=NAMEp thread=a
42 permits op=available name=NAMEp thread=a
nonsense
`, "NAME", name))
	var stdout, stderr bytes.Buffer
	if code := drive([]string{"-redis", server.URL()}, in, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	want := []string{
		"0 err class=protocol",
		"1 ok client= pid=", "2 ok at= held=true nanos=", "3 ok held=true", "4 ok count=2", "5 ok at=",
		"6 ok count=1 holder= locked=true ttl=", "7 ok at=", "8 err class=ErrNotHeld",
		"9 err class=error unknown%20kind", "10 err class=error", "11 err class=error unknown%20verb",
		"12 ok held=true", "13 ok at= class=ErrLost message=", "14 err class=ErrLost",
		"15 ok held=true", "16 ok held=true", "17 ok at=", "18 ok count=1 locked=true", "19 ok at=",
		"20 ok held=true", "21 ok count=1", "22 ok locked=true", "23 ok at=", "24 ok token=2", "25 ok at=",
		"26 err three", "27 ok rounds=2 torn=0",
		"30 ok done=true", "31 ok at= held=true nanos=", "32 ok held=false", "33 ok n=1", "34 err unknown%20op",
		"35 ok done=true", "36 ok at=", "37 ok held=true",
		"38 ok done=true", "39 ok at= held=true id=", "40 ok held=false", "41 err hexadecimal", "42 ok n=0",
	}
	for _, words := range want {
		id, _, _ := strings.Cut(words, " ")
		_, answer, found := strings.Cut("\n"+stdout.String(), "\n"+id+" ")
		answer, _, _ = strings.Cut(answer, "\n")
		for _, word := range strings.Fields(words)[1:] {
			if !found || !strings.Contains(answer, word) {
				t.Errorf("%s is answered %q, want %s", id, answer, words)
				break
			}
		}
	}
	counter := "redisson_lock_token:{" + raw + "a}"
	keys := slices.DeleteFunc(server.Keys(t, "*"+raw+"*"), func(key string) bool { return strings.HasPrefix(key, "lockkeeper_calls:") })
	want = []string{counter, raw + "s", raw + "p"} // the permit itself was released at the end
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Errorf("left in Redis: %q, want %q", keys, want)
	}
}

// judge detects overlapping holds and falling tokens.
func TestJudge(t *testing.T) {
	promotion := time.Now()
	hold := func(s side, lock string, granted, left int, token int64) trusted {
		return trusted{span{s, s.name, promotion, promotion.Add(milliseconds(granted)), promotion.Add(milliseconds(left))}, lock, token}
	}
	other := []trusted{hold(java, "b", -30, 30, 9), hold(golang, "b", 40, 45, 10)}
	for want, holds := range map[string][]trusted{
		"":                     {hold(golang, "a", -10, -5, 1), hold(java, "a", -5, 5, 2), hold(golang, "a", 10, 20, 3), hold(java, "a", 20, 25, 4)},
		"1 holds overlap":      {hold(golang, "a", -10, 20, 1), hold(java, "a", 19, 25, 2)},
		"1 tokens have fallen": {hold(java, "a", -10, 5, 5), hold(golang, "a", 10, 20, 4), hold(java, "a", 30, 40, 6)},
		"2 tokens have fallen": {hold(java, "a", -10, 5, 5), hold(golang, "a", 10, 20, 5), hold(java, "a", 30, 40, 5)},
	} {
		s, c := &env{}, &contention{holds: append(holds, other...)}
		err := s.run(func(s *env) { c.judge(s, promotion, promotion) })
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
