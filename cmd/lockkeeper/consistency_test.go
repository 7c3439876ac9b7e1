//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

// service is a process with runService, its URL and its client UUID.
type service struct {
	*process
	name, url, client string
}

func startService(t *testing.T, server *redistest.Server, name string) service {
	cmd := program(t)
	cmd.Env = append(cmd.Env, serviceEnv+"="+name, "REDIS_URL="+server.URL())
	s := service{process: start(t, cmd), name: name}
	line, _ := s.line()
	if _, err := fmt.Sscan(line, &s.url, &s.client); err != nil {
		t.Fatalf("%s printed %q: %s", name, line, s.stderrText())
	}
	return s
}

func (s service) get(path string) string {
	s.t.Helper()
	client := http.Client{Timeout: redistest.Limit}
	response, err := client.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v: %s", path, response.Status, err, body)
	}
	return string(body)
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

type event struct{ Lock, Text string }

// consoleData is the content of data.json.
type consoleData struct {
	Systems []inspect.Process
	Locks   []struct {
		Name, Kind, Owner  string
		Held, Here, Shared bool
		Asked              bool
		Holders, Waiters   int
		Count, Token       int64
		Process            *inspect.Process
	}
	Held, Waiters int
	Counts        struct{ Grants, Losses int64 }
	Events        []event
	Errors        []string
}

func (s service) console(filter string) consoleData {
	return decode[consoleData](s.t, s.get("/locks/data.json?q="+url.QueryEscape(filter)))
}

func (s service) metrics() map[string]int64 { return decode[map[string]int64](s.t, s.get("/metrics")) }

// logged returns the log records with a message.
func (s service) logged(message string) (lines []map[string]any) {
	for line := range strings.Lines(s.stderrText()) {
		if fields := map[string]any{}; json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
			lines = append(lines, fields)
		}
	}
	return lines
}

// ownersIn returns the owners of all locks in Redis, and their counts.
func ownersIn(t *testing.T, server *redistest.Server) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, key := range server.Keys(t, "*-*") {
		if fields, err := server.Do(t, "HGETALL", key).AsStrMap(); err == nil && !strings.Contains(key, "_queue:") {
			delete(fields, "mode")
			all[key] = fields
		}
	}
	all["shared"], _ = server.Do(t, "HGETALL", "shared").AsStrMap()
	delete(all["shared"], "mode")
	return all
}

// of reports whether an owner field belongs to a service; the UUID of a MultiLock has the same beginning.
func (s service) of(field string) bool { return strings.HasPrefix(field, s.client[:18]) }

// is reports whether a process is that of a service.
func (s service) is(p inspect.Process) bool {
	host, _ := os.Hostname()
	return p.PID == s.cmd.Process.Pid && p.Host == host && p.Application == s.name && p.Since != nil && time.Since(*p.Since) < time.Hour
}

// differences returns where the output of the program and of the running services differs from Redis.
func differences(t *testing.T, server *redistest.Server, all, living []service) (found []string) {
	differs := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	redis := ownersIn(t, server)
	kinds := map[string]int{}
	listed := slices.DeleteFunc(read[inspect.Lock](t, server, 0, "ls", "--json"), func(l inspect.Lock) bool {
		kinds[l.Kind]++
		return l.Kind == inspect.KindPermits || l.Kind == inspect.KindCounter
	})
	if permits := len(server.Keys(t, "{*-permits-*}:timeout")); kinds[inspect.KindPermits] != permits ||
		kinds[inspect.KindCounter] != 2*len(all) {
		differs("ls lists %v, and there are %d names with permits, and %d semaphores and latches", kinds, permits, 2*len(all))
	}
	if len(listed) != len(redis) {
		differs("ls lists %d locks of %d", len(listed), len(redis))
	}
	for _, v := range listed {
		owners := map[string]string{}
		for _, o := range v.Owners {
			field := o.Field
			if o.Mode == "write" {
				field += ":write"
			}
			owners[field] = fmt.Sprint(o.Count)
			if !slices.ContainsFunc(all, func(s service) bool { return s.of(o.Field) && s.is(o.Process) }) {
				differs("ls: %s is held by %+v", v.Name, o.Process)
			}
		}
		if !maps.Equal(owners, redis[v.Name]) {
			differs("ls: the owners of %s are %v, and %v", v.Name, owners, redis[v.Name])
		}
	}
	for _, s := range living {
		ours := map[string]bool{}
		for name, owners := range redis {
			for field := range owners {
				ours[name] = ours[name] || s.of(field)
			}
		}
		everything := s.console("")
		if len(everything.Systems) != len(all) || len(everything.Errors) > 0 {
			differs("%s: Systems %+v, errors %v", s.name, everything.Systems, everything.Errors)
		}
		metrics, waiting := s.metrics(), 0
		holds, shown := 0, map[string]bool{}
		for _, filter := range []string{"a-", s.name + "-plain", s.name + "-fenced", s.name + "-fair", s.name + "-read", s.name + "-write", s.name + "-multi", s.name + "-permits", "shared"} {
			if filter == "a-" && s.name == "a" {
				continue
			}
			for _, l := range s.console(filter).Locks {
				if shown[l.Name] {
					continue
				}
				shown[l.Name] = true
				waiting += l.Waiters
				if l.Here {
					holds += l.Holders
				}
				if l.Kind == "multi" || l.Kind == "expirable_semaphore" {
					continue
				}
				field := slices.Sorted(maps.Keys(redis[l.Name]))
				if l.Held != (len(field) > 0) || l.Here != ours[l.Name] || l.Shared != (strings.Contains(l.Name, "-read-") || l.Name == "shared") {
					differs("the console of %s: %+v, and the owners are %v", s.name, l, redis[l.Name])
				}
				if !l.Asked || !l.Held {
					continue
				}
				if !slices.ContainsFunc(all, func(o service) bool { return o.of(l.Owner) && o.is(*l.Process) }) ||
					len(field) == 1 && (strings.TrimSuffix(field[0], ":write") != l.Owner || redis[l.Name][field[0]] != fmt.Sprint(l.Count)) {
					differs("the console of %s: %+v of %+v, and the owners are %v", s.name, l, *l.Process, redis[l.Name])
				}
			}
		}
		for name := range ours {
			if ours[name] && !shown[name] && !strings.Contains(name, "-multi-") {
				differs("the console of %s does not show %s", s.name, name)
			}
		}
		if shared := len(redis["shared"]) - 1; shared > 0 && s.console("shared").Locks[0].Holders == len(redis["shared"]) {
			holds -= shared // its holders elsewhere
		}
		// A MultiLock has two members, and a re-entry joins a hold.
		if permits := len(server.Keys(t, "{"+s.name+"-permits-*}:timeout")); holds != everything.Held ||
			int(metrics["lockkeeper.holds"]) != holds || holds != len(owned(ours))-ofEach+permits {
			differs("%s: console %d and %d holds, metrics %d, in Redis %d locks and %d permits", s.name, holds, everything.Held, metrics["lockkeeper.holds"], len(owned(ours)), permits)
		}
		if waiting != everything.Waiters || int(metrics["lockkeeper.waiters"]) != waiting {
			differs("%s: console %d and %d waiters, metrics %d", s.name, waiting, everything.Waiters, metrics["lockkeeper.waiters"])
		}
		if metrics["lockkeeper.grants"] != everything.Counts.Grants || metrics["lockkeeper.losses"] != everything.Counts.Losses ||
			int(metrics["lockkeeper.losses"]) != len(s.logged("lease lost")) {
			differs("%s: metrics %v, console %+v, %d losses are logged", s.name, metrics, everything.Counts, len(s.logged("lease lost")))
		}
	}
	return found
}

func owned(ours map[string]bool) (names []string) {
	for name, is := range ours {
		if is {
			names = append(names, name)
		}
	}
	return names
}

// During a freeze of Redis, a kill -9, a forced release and a hand-over, the program, the consoles, the metrics and the
// logs agree with Redis about some 500 locks.
func TestProgramConsoleMetricsAndLogsAgree(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b, c := startService(t, server, "a"), startService(t, server, "b"), startService(t, server, "c")
	all := []service{a, b, c}
	agree := func(living ...service) {
		t.Helper()
		var found []string
		defer func() {
			for _, text := range found[:min(len(found), 20)] {
				t.Error(text)
			}
		}()
		redistest.Eventually(t, "all agree", func() bool { found = differences(t, server, all, living); return len(found) == 0 })
	}
	inspect := func(name string) inspect.Lock { return read[inspect.Lock](t, server, 0, "inspect", "--json", name)[0] }
	heldBy := func(name string, s service) bool { return s.is(inspect(name).Owners[0].Process) }
	contended := []string{"a-plain-0", "a-fair-0", "a-write-0"}
	for _, s := range []service{b, c} {
		s.get("/wait")
	}
	redistest.Eventually(t, "all wait", func() bool {
		return b.metrics()["lockkeeper.waiters"] == 3 && c.metrics()["lockkeeper.waiters"] == 3 && inspect(contended[0]).Waiters.N == 2 && inspect(contended[1]).Waiters.N == 2 && inspect(contended[2]).Waiters.N == 2
	})
	agree(all...)
	for _, line := range b.logged("a request has been waiting for a long time") {
		if line["pid"] != float64(a.cmd.Process.Pid) || line["application"] != "a" || !slices.Contains(contended, line["lock"].(string)) {
			t.Errorf("b logs %v", line)
		}
	}

	server.Pause(t)
	redistest.Eventually(t, "it is noticed", func() bool {
		return strings.Contains(c.get("/ensure?lock=c-plain-0"), "unavailable") && len(c.logged("Redis is unavailable")) > 0 && len(c.console("").Errors) > 0
	})
	runCommand(t, server, exitUnavailable, "inspect", "a-plain-0")
	server.Resume(t)
	redistest.Eventually(t, "its end is noticed", func() bool {
		return strings.Contains(c.get("/ensure?lock=c-plain-0"), "nil") && len(c.logged("Redis is available again")) > 0
	})
	agree(all...)

	check(a.cmd.Process.Kill())
	agree(b, c)
	if !heldBy("a-multi-0x", a) || !heldBy("a-write-0", a) {
		t.Error("the locks of a dead process are not traced to it")
	}
	runCommand(t, server, 0, "release", "--force", contended[0])
	redistest.Eventually(t, "b or c has it", func() bool { return heldBy(contended[0], b) || heldBy(contended[0], c) })
	agree(b, c)

	runCommand(t, server, 0, "release", "--force", "b-plain-1")
	redistest.Eventually(t, "the loss is noticed", func() bool { return strings.Contains(b.get("/ensure?lock=b-plain-1"), "lost") })
	agree(b, c)
	line := b.logged("lease lost")
	if len(line) != 1 || line[0]["lock"] != "b-plain-1" || b.metrics()["lockkeeper.losses plain "+fmt.Sprint(line[0]["reason"])] != 1 {
		t.Errorf("the loss is logged as %v, with the metrics %v", line, b.metrics())
	}
	events := b.console("").Events
	if !slices.ContainsFunc(events, func(e event) bool {
		return e.Lock == "b-plain-1" && strings.Contains(e.Text, fmt.Sprint(line[0]["reason"]))
	}) {
		t.Errorf("the console has the events %v", events)
	}
}
