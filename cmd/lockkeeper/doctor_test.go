//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// sameForAllKinds returns the findings if they are the same for every kind.
func sameForAllKinds(status, words string) (found []string) {
	for _, kind := range trialKinds() {
		found = append(found, kind+" "+status+" "+words)
	}
	return found
}

// without removes kinds whose first command is not refused by a full Redis.
func without(found []string, kinds ...string) []string {
	return slices.DeleteFunc(found, func(f string) bool { return slices.Contains(kinds, strings.Fields(f)[0]) })
}

// expectFindings compares the findings that are not ok with want: "check status words".
func expectFindings(t *testing.T, findings []finding, want []string) {
	t.Helper()
	var bad []finding
	for _, f := range findings {
		if f.Status != isOK {
			bad = append(bad, f)
		} else if f.Advice != "" {
			t.Errorf("all is well, but there is advice: %+v", f)
		}
	}
	if len(bad) != len(want) || len(findings) < 7 {
		t.Fatalf("found %+v, want %q", findings, want)
	}
	for i, want := range want {
		words := strings.SplitN(want, " ", 3)
		if f := bad[i]; strings.ReplaceAll(f.Check, " ", "_") != words[0] ||
			f.Status != words[1] || !strings.Contains(f.Found+f.Advice, words[2]) {
			t.Errorf("found %+v, want %q", f, want)
		}
	}
}

// Each case is a server with options, the rules of its user, and the findings that are not ok:
// "check status words"; all other checks must be ok.
func TestDoctor_FindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		options, rules string
		code           int
		found          []string
	}{
		"good":           {"--appendonly yes", "", 0, nil},
		"forgetful":      {"", "", 0, []string{"persistence warn appendonly"}},
		"evicts":         {"--appendonly yes --maxmemory 100mb --maxmemory-policy volatile-ttl", "", exitNo, []string{"eviction fail noeviction"}},
		"would evict":    {"--appendonly yes --maxmemory-policy allkeys-lru", "", 0, []string{"eviction warn maxmemory"}},
		"full":           {"--appendonly yes --maxmemory 900kb", "", exitNo, append([]string{"memory fail maxmemory"}, without(sameForAllKinds("fail", "OOM"), "semaphore", "latch")...)},
		"lonely replica": {"--appendonly yes --replica-read-only no --replicaof 127.0.0.1 1", "", exitNo, []string{"replicas fail master"}},
		"no publish":     {"--appendonly yes", "~* &* +@all -publish", exitNo, sameForAllKinds("fail", "+publish,")},
		"no ping":        {"--appendonly yes", "~* &* +@all -ping", exitNo, []string{"ping fail +ping"}},
		"no records": {
			"--appendonly yes",
			"~lockkeeper_doctor* ~*redisson_* ~*lockkeeper_writer* ~*lockkeeper_wait_* " +
				"~*lockkeeper_read_write_* ~*lockkeeper_calls* ~*lockkeeper_counted* ~{lockkeeper_doctor* &* +@all",
			0, []string{"fair warn record", "systems unknown +zrange"},
		},
		"no channels": {"--appendonly yes", "~* resetchannels +@all", exitNo, sameForAllKinds("fail", "+publish")},
		"no info":     {"--appendonly yes", "~* &* +@all -info", 0, []string{"info unknown +info"}},
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
			expectFindings(t, findings, c.found)
			if c.rules == "" { // remaining entries of wait queues expire soon
				redistest.Eventually(t, "an empty Redis", func() bool { return len(server.Keys(t, "*")) == 0 })
			}
		})
	}
}

// Where doctor advises to set Config.Replicas, it says whether this user may use it.
func TestDoctor_TriesWait(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	redistest.Replica(t, server)
	for rules, want := range map[string]string{"+@all": "set Config.Replicas", "+@all -wait": "Config.Replicas cannot be set, since WAIT fails (NOPERM"} {
		server.Do(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">secret", "~*", "&*"}, strings.Fields(rules)...)...)
		findings := read[finding](t, server, 0, "doctor", "--json", "-kind", "plain", "-redis", strings.Replace(server.URL(), "//", "//locker:secret@", 1))
		expectFindings(t, findings, []string{"replicas warn " + "1: a failover may lose the latest locks" + want})
	}
}

// With -kind, doctor needs only the rights for these kinds, and is refused nothing.
func TestDoctor_TriesTheChosenKinds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	for rights, kinds := range map[string][]string{
		"plain and fenced": {"plain", "fenced"}, "fair": {"fair"}, "read/write": {"read", "write"},
		"latch": {"latch"}, "expirable semaphore": {"expirable_semaphore"}, "semaphore": {"semaphore"},
		"MultiLock": {"multi"},
	} {
		i := slices.IndexFunc(redisio.ACL(), func(r redisio.Rights) bool { return r.Kind == rights })
		rules := "reset on >secret " + redisio.ACL()[i].Rules(redisio.OneServer, "app:") + " +info +pubsub|numsub"
		server.Do(t, "ACL", "LOG", "RESET")
		if err := server.Do(t, append([]string{"ACL", "SETUSER", "locker"}, strings.Fields(rules)...)...).Error(); err != nil {
			t.Fatal(err)
		}
		args := []string{"doctor", "--json", "-prefix", "app:", "-redis", strings.Replace(server.URL(), "//", "//locker:secret@", 1)}
		for _, kind := range kinds {
			args = append(args, "-kind", kind)
		}
		tried := map[string]bool{}
		for _, f := range read[finding](t, server, 0, args...) {
			if f.Status != isOK {
				t.Errorf("with the rights for %s only: %+v", rights, f)
			}
			tried[f.Check] = true
		}
		for _, kind := range trialKinds() {
			if tried[kind] != slices.Contains(kinds, kind) {
				t.Errorf("%s: tried %v", rights, tried)
			}
		}
		log, _ := server.Do(t, "ACL", "LOG").ToArray()
		for _, entry := range log {
			refused, _ := entry.AsStrMap()
			t.Errorf("%s: refused %v", rights, refused)
		}
	}
}

// Behind a proxy that drops messages, every kind fails although all commands work. If the proxy closes the
// connection that subscribes, doctor reports that.
func TestDoctor_NoticesThatMessagesAreDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(p *redistest.Proxy)
		found string
	}{
		"closed at SUBSCRIBE": {func(p *redistest.Proxy) { p.DropRepliesTo(redistest.Command("SUBSCRIBE"), 0) }, "not woken within 5s: SUBSCRIBE keeps failing"},
		"messages are lost":   {func(p *redistest.Proxy) { p.DropMessages(true) }, "not woken within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes")
			p := redistest.NewProxy(t, server.Addr())
			c.fault(p)
			want := sameForAllKinds("fail", "not woken within 1s")
			want[0] = "fair fail " + c.found
			expectFindings(t, read[finding](t, server, exitNo, "doctor", "--json", "-redis", p.URL()), want)
		})
	}
}

// A doctor that is interrupted during a trial leaves no key that stays.
func TestDoctor_InterruptedLeavesNoKey(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.DropMessages(true) // the waiter is not woken
	p := start(t, program(t, "doctor", "--json", "-redis", proxy.URL(), "-kind", "expirable_semaphore"))
	redistest.Eventually(t, "a trial", func() bool {
		return len(server.Keys(t, "lockkeeper_doctor:*:expirable_semaphore")) > 0
	})
	p.signal("INT")
	for _, more := p.line(); more; {
		_, more = p.line()
	}
	for _, key := range server.Keys(t, "*lockkeeper_doctor*") {
		if ttl, err := server.Do(t, "PTTL", key).AsInt64(); err != nil || ttl == -1 {
			t.Errorf("%q stays", key)
		}
	}
}

// doctor reports a server that refuses scripts which use undeclared keys, with advice. If the user may not run the
// test, the result is unknown.
func TestDoctor_TriesUndeclaredKeys(t *testing.T) {
	t.Parallel()
	strict := redistest.NewFakeServer(t)
	strict.Answer("-ERR Error running script (call to 5c4d): @user_script:1: script tried accessing undeclared key, key: k\r\n", 0)
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "locker", "on", ">secret", "~*", "&*", "+@all", "-exists")
	for url, want := range map[string]finding{
		strict.URL(): {Status: isFailure, Found: "undeclared key, key: k", Advice: "allow-undeclared-keys"},
		server.URL(): {Status: isOK},
		strings.Replace(server.URL(), "//", "//locker:secret@", 1): {Status: isUnknown, Found: "ACL user", Advice: "EXISTS"},
	} {
		var out, errs strings.Builder
		dispatch([]string{"doctor", "--json", "-redis", url}, environment{stdout: &out, stderr: &errs})
		var found finding
		for line := range strings.Lines(out.String()) {
			var f finding
			if check(json.Unmarshal([]byte(line), &f)); f.Check == "undeclared keys" {
				found = f
			}
		}
		if found.Status != want.Status || !strings.Contains(found.Found, want.Found) || !strings.Contains(found.Advice, want.Advice) {
			t.Errorf("found %+v, want %+v; %s", found, want, &errs)
		}
	}
}

// In a cluster, doctor checks each master, and ls finds the locks and the subscribers of all masters.
func TestCluster_AllMastersAreListedAndChecked(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t, 2)
	replica := redistest.ClusterReplica(t, servers)
	replica.Do(t, "CONFIG", "SET", "cluster-replica-no-failover", "yes") // a busy machine may look like a dead master
	findings := read[finding](t, servers[0], 0, "doctor", "--json")      // there is no append-only file, which is a warning
	for _, want := range []struct {
		check string
		n     int
	}{{"version", 2}, {"cluster", 1}, {"fair", 1}} {
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
		listener, channel := java[int(keyspace.Slot(name))*len(servers)/16384], keyspace.Channel(name)
		check(listener.Do(t.Context(), listener.B().Ssubscribe().Channel(channel).Build()).Error())
		want = append(want, name)
	}
	for _, pattern := range []string{"*", "lock-*"} {
		var got []string
		for _, v := range read[inspect.Lock](t, servers[1], 0, "ls", "--json", pattern) {
			if got = append(got, v.Name); v.Kind != "fenced" || v.Token != 1 ||
				v.Waiters != inspect.Known(1) || v.Owners[0].Process.Application != "spread" {
				t.Errorf("listed without its holder or its waiter: %+v", v)
			}
		}
		if n := replica.Calls(t)["scan"]; !slices.Equal(got, want) || n > 0 {
			t.Errorf("ls %s lists %q, with %d scans of a replica", pattern, got, n)
		}
	}
}

// If a master of a cluster is down, ls lists the locks on the others, and doctor checks them. Both name the
// master that is down, and report whether the others serve.
func TestCluster_NamesTheMasterThatIsDown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		covered string
		listed  bool
		why     string
	}{
		"the others serve":  {"no", true, "the master "},
		"the others refuse": {"yes", false, "CLUSTERDOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Cluster(t, 3)
			for _, s := range servers {
				check(s.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", c.covered).Error())
			}
			var want, lost []string
			for i := range 9 {
				name := fmt.Sprintf("lock-%02d", i)
				at := int(keyspace.Slot(name)) * len(servers) / 16384
				check(servers[at].Do(t, "HSET", name, "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:57", "1").Error())
				if at == 2 {
					lost = append(lost, name)
				} else {
					want = append(want, name)
				}
			}
			servers[2].Kill(t)
			redistest.Eventually(t, "the others to notice", func() bool {
				info, err := servers[0].Do(t, "CLUSTER", "INFO").ToString()
				return err == nil && strings.Contains(info, "cluster_slots_fail:54")
			})
			for _, pattern := range []string{"*", "lock-*"} {
				var out, errs strings.Builder
				env := environment{variables: []string{"REDIS_URL=" + servers[1].URL()}, stdout: &out, stderr: &errs}
				code := dispatch([]string{"ls", pattern}, env)
				if code != exitUnavailable || !strings.Contains(errs.String(), servers[2].Addr()) || !strings.Contains(errs.String(), c.why) {
					t.Errorf("ls %s: exit code %d: %s", pattern, code, &errs)
				}
				for _, name := range want {
					if strings.Contains(out.String(), name) != c.listed {
						t.Errorf("ls %s: %s is not listed, or is: %s", pattern, name, &out)
					}
				}
			}
			findings := read[finding](t, servers[1], exitNo, "doctor", "--json")
			named, versions := false, 0
			for _, f := range findings {
				if f.Status == isFailure && strings.Contains(f.Found+f.Server, servers[2].Addr()) {
					named = true
				}
				if f.Check == "version" && f.Status == isOK {
					versions++
				}
				if f.Check == "numbers" &&
					(f.Status != isUnknown || !strings.Contains(f.Advice, "must answer") || strings.Contains(f.Advice, "rights")) {
					t.Errorf("doctor advises %+v", f)
				}
				if f.Check == "cluster" && f.Status != isFailure {
					t.Errorf("doctor found %+v", f)
				}
			}
			if !named || versions != 2 || len(lost) == 0 {
				t.Errorf("doctor found %+v", findings)
			}
		})
	}
}

// The shell completes subcommands, flags and kinds.
func TestCompletion_HasSubcommandsFlagsAndKinds(t *testing.T) {
	var script strings.Builder
	if code := dispatch([]string{"completion", "bash"}, environment{stdout: &script}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for line, want := range map[string]string{
		"lockkeeper ins":                "inspect",
		"lockkeeper run -w":             "-wait -watchdog",
		"lockkeeper run -lock x -kind ": "fair fenced plain read write expirable_semaphore",
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

// The line of progress names the holder of the lock, with the time since it was first seen, and fits the terminal.
func TestProgressLine_NamesTheHolder(t *testing.T) {
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
	at(1, one, 200, "waiting for x for 1s: held for at least 0s by client one, which has no record; ttl 5s")
	at(3, one, 20, "waiting for x for …")
	at(3, one, 200, "waiting for x for 3s: held for at least 2s by client one, which has no record; ttl 5s")
	at(4, two, 200, "waiting for x for 4s: held for at least 0s by client two, which has no record; ttl never")
	two.HeldAtLeast = time.Minute // by its record
	at(4, two, 200, "waiting for x for 4s: held for at least 1m0s by client two, which has no record; ttl never")
	at(5, lockkeeper.Status{}, 200, "waiting for x for 5s: free, and others are before us")
}
