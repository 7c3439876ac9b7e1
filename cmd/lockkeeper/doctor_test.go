//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/look"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Each case is a server with options, the rules of a user of it, and what doctor finds there
// that is not ok: "check status words"; all other checks must be ok.
func TestDoctor(t *testing.T) {
	for name, c := range map[string]struct {
		options, rules string
		code           int
		found          []string
	}{
		"good":        {"--appendonly yes", "", 0, nil},
		"forgetful":   {"", "", 0, []string{"persistence warn appendonly"}},
		"evicts":      {"--appendonly yes --maxmemory 100mb --maxmemory-policy volatile-ttl", "", exitNo, []string{"eviction fail noeviction"}},
		"would evict": {"--appendonly yes --maxmemory-policy allkeys-lru", "", 0, []string{"eviction warn maxmemory"}},
		"full": {"--appendonly yes --maxmemory 900kb", "", exitNo, []string{"memory fail maxmemory", "reentrant_lock fail OOM", "fenced_lock fail OOM",
			"fair_lock fail OOM", "write_lock fail OOM", "read_lock fail OOM"}},
		"lonely replica": {"--appendonly yes --replica-read-only no --replicaof 127.0.0.1 1", "", exitNo, []string{"replicas fail master"}},
		"no publish": {"--appendonly yes", "~* &* +@all -publish", exitNo, []string{
			"reentrant_lock fail +publish,", "fenced_lock fail +publish,", "fair_lock fail +publish,", "write_lock fail +publish,", "read_lock fail +publish,"}},
		"no ping":    {"--appendonly yes", "~* &* +@all -ping", exitNo, []string{"ping fail +ping"}},
		"no records": {"--appendonly yes", "~lockkeeper_doctor* ~*redisson_* ~*lockkeeper_writer* ~*lockkeeper_line* ~{lockkeeper_doctor* &* +@all", 0, []string{"reentrant_lock warn record", "systems unknown +zrange"}},
		"no channels": {"--appendonly yes", "~* resetchannels +@all", exitNo, []string{
			"reentrant_lock fail +publish", "fenced_lock fail +publish", "fair_lock fail +publish", "write_lock fail +publish", "read_lock fail +publish"}},
		"no info": {"--appendonly yes", "~* &* +@all -info", 0, []string{"info unknown +info"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, strings.Fields(c.options)...)
			url := server.URL()
			if c.rules != "" {
				server.Do(t, append([]string{"ACL", "SETUSER", "locker", "on", ">secret"}, strings.Fields(c.rules)...)...)
				url = strings.Replace(url, "//", "//locker:secret@", 1)
			}
			findings := read[finding](t, server, c.code, "doctor", "--json", "-redis", url)
			var bad []finding
			for _, f := range findings {
				if f.Status != isOK {
					bad = append(bad, f)
				} else if f.Advice != "" {
					t.Errorf("%+v", f)
				}
			}
			if len(bad) != len(c.found) || len(findings) < 7 {
				t.Fatalf("found %+v, want %q", findings, c.found)
			}
			for i, want := range c.found {
				words := strings.SplitN(want, " ", 3)
				if f := bad[i]; strings.ReplaceAll(f.Check, " ", "_") != words[0] || f.Status != words[1] || !strings.Contains(f.Found+f.Advice, words[2]) {
					t.Errorf("found %+v, want %q", f, want)
				}
			}
			if c.rules == "" { // what is left of a line expires soon
				redistest.Eventually(t, "an empty Redis", func() bool { return len(server.Keys(t, "*")) == 0 })
			}
		})
	}
}

// In a cluster, doctor looks at each master, and ls finds the locks of all, and who listens there.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	replica := redistest.ClusterReplica(t, servers)
	replica.Do(t, "CONFIG", "SET", "cluster-replica-no-failover", "yes") // a busy machine may look like a dead master
	findings := read[finding](t, servers[0], 0, "doctor", "--json")      // there is no append-only file, which is a warning
	for _, want := range []struct {
		check string
		n     int
	}{{"version", 2}, {"cluster", 1}, {"fair lock", 1}} {
		n := 0
		for _, f := range findings {
			if f.Check == want.check && f.Status == isOK && (f.Server != "") == (want.n > 1) {
				n++
			}
		}
		if n != want.n {
			t.Errorf("%d findings about %s, want %d: %+v", n, want.check, want.n, findings)
		}
	}
	s := must(lockkeeper.Open(t.Context(), servers[0].URL(), lockkeeper.WithConfig(lockkeeper.Config{Application: "spread"})))
	t.Cleanup(func() { check(s.Close(context.Background())) })
	var want []string
	java := make([]rueidis.DedicatedClient, len(servers))
	for i, server := range servers {
		var giveBack func()
		java[i], giveBack = server.Client(t).Dedicate()
		t.Cleanup(func() { java[i].Close(); giveBack() })
	}
	for i := range 20 {
		name := fmt.Sprintf("lock-%02d", i)
		must(s.FencedLock(name).Acquire(t.Context()))
		listener, channel := java[int(redisio.Slot(name))*len(servers)/16384], redisio.Channel(name)
		check(listener.Do(t.Context(), listener.B().Ssubscribe().Channel(channel).Build()).Error())
		want = append(want, name)
	}
	var got []string
	for _, v := range read[look.Lock](t, servers[1], 0, "ls", "--json") {
		if got = append(got, v.Name); v.Kind != "fenced" || v.Token != 1 || v.Waiters != 1 || v.Owners[0].Process.Application != "spread" {
			t.Errorf("%+v", v)
		}
	}
	if n := replica.Calls(t)["scan"]; !slices.Equal(got, want) || n > 0 {
		t.Errorf("listed %q, with %d questions to a replica", got, n)
	}
}

// The shell completes subcommands, flags and kinds.
func TestCompletion(t *testing.T) {
	var script strings.Builder
	if code := dispatch([]string{"completion", "bash"}, environment{stdout: &script}); code != 0 {
		t.Fatal(code)
	}
	for line, want := range map[string]string{
		"lockkeeper ins":                "inspect",
		"lockkeeper run -w":             "-wait -watchdog",
		"lockkeeper run -lock x -kind ": "fair fenced read reentrant write semaphore",
		"lockkeeper release -f":         "-force",
		"lockkeeper completion ":        "bash zsh",
		"lockkeeper help doc":           "doctor",
	} {
		words := strings.Split(line, " ")
		test := fmt.Sprintf("%s\nCOMP_WORDS=('%s') COMP_CWORD=%d\n_lockkeeper\necho ${COMPREPLY[@]}", &script, strings.Join(words, "' '"), len(words)-1)
		out, err := exec.Command("bash", "-c", test).CombinedOutput()
		if got := strings.TrimSpace(string(out)); got != want || err != nil {
			t.Errorf("%q is completed by %q, %v, want %q", line, got, err, want)
		}
	}
}

// A line of progress says who has the lock, since it was first seen there, and fits the terminal.
func TestProgressLine(t *testing.T) {
	began := time.Now()
	p := progress{began: began}
	at := func(seconds int, s lockkeeper.Status, columns int, want string) {
		t.Helper()
		if got := p.line("x", s, began.Add(time.Duration(seconds)*time.Second), columns); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	one := lockkeeper.Status{Locked: true, Holder: "one:1", TTL: 5 * time.Second, Process: lockkeeper.Process{Client: "one"}}
	two := lockkeeper.Status{Locked: true, Holder: "two:1", TTL: -1, Process: lockkeeper.Process{Client: "two"}}
	at(1, one, 200, "waiting for x for 1s: held for 0s or more by client one, which has no record; ttl 5s")
	at(3, one, 20, "waiting for x for …")
	at(3, one, 200, "waiting for x for 3s: held for 2s or more by client one, which has no record; ttl 5s")
	at(4, two, 200, "waiting for x for 4s: held for 0s or more by client two, which has no record; ttl never")
	at(5, lockkeeper.Status{}, 200, "waiting for x for 5s: free, and others are before us")
}
