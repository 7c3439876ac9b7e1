//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Shell scripts that run under a lock.
const (
	patient      = `echo ready; cat >/dev/null`
	printTerm    = `trap "echo terminated; exit 3" TERM; echo ready; while :; do sleep 0.01; done`
	printSignals = `for s in HUP INT QUIT TERM USR1; do trap "echo $s" $s; done; trap "exit 9" USR2
		echo ready; while :; do sleep 0.01; done`
	tokens = `echo "[$LOCK_TOKEN] [$LOCK_TOKENS]"`
	nested = `exec "$0" run -lock %Lb -kind `
)

// Steps of a case that are used more than once.
const (
	held    = "HSET %L 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1 1; PEXPIRE %L 600000; start; " // by another client
	writing = "HSET %L mode write 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1:write 1; PEXPIRE %L 600000; start; "
	reading = "HSET %L mode read 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1 1; SET {%L}:9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1:rwlock_timeout:1 1 PX 600000; PEXPIRE %L 600000; start; "
	freed   = "DEL %L; PUBLISH redisson_lock__channel:{%L} 0; "
	ready   = "> ready; "
)

// Each case starts `lockkeeper run` with flags, and "sh -c script" if there is a script. It then
// executes the steps, and expects the exit code and a text on stderr. %L is the lock of the case. The steps are
//
//	> line       the program prints that line next
//	signal TERM  sends the program a signal
//	stderr text  the program has printed that text on its standard error
//	waits        the program waits for the lock
//	eof          closes the standard input of the program
//	start        starts the program; without this step it is started first
//	SET %L x     a command to Redis, which PEXPIRE and HSETNX expect to have an effect
var cases = []struct {
	name, flags, script, steps string
	code                       int
	text                       string
}{
	{"success", "-lock %L --", "true", "", 0, ""},
	{"failure", "-lock %L --", "exit 42", "", 42, ""},
	{"killed", "-lock %L --", "kill -KILL $$", "", 128 + 9, ""},
	{"terminated", "-lock %L --", "kill $$", "", 128 + 15, ""},
	{"verbose", "-lock %L -v true", "", "", 0, "has given the lock"},

	{"no wait", "-lock %L -wait 0 echo ran", "", held, exitHeld, "lock is held: the holder is 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1; see lockkeeper inspect"},
	{"no wait, and another code", "-lock %L -wait 0 -held-exit 0 echo ran", "", held, 0, "lock is held"},
	{"short wait", "-lock %L -wait 100ms echo ran", "", held, exitHeld, "wait timed out"},
	{"long wait", "-lock %L -wait 10m echo ran", "", held + "waits; " + freed + "> ran", 0, ""},
	{"wait without limit", "-lock %L echo ran", "", held + "waits; " + freed + "> ran", 0, ""},
	{"wait ended by INT", "-lock %L echo ran", "", held + "waits; signal INT", 128 + 2, "interrupt"},
	{"wait ended by TERM", "-lock %L echo ran", "", held + "waits; signal TERM", 128 + 15, "terminated"},
	{"wait ended by USR1", "-lock %L echo ran", "", held + "waits; signal USR1", 128 + int(syscall.SIGUSR1), "user defined signal 1"},

	{"key deleted", "-lock %L -watchdog 1s", printTerm, ready + "DEL %L; > terminated", exitLost, "the key is gone"},
	{"lock taken", "-lock %L -watchdog 1s", patient, ready + "DEL %L; HSET %L 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1 1", exitLost, "another owner"},
	{"fixed lease over", "-lock %L -lease 400ms", patient, ready, exitLost, "its fixed lease of 400ms is over"},
	{"loss noticed at the end", "-lock %L", patient, ready + "DEL %L; eof", exitLost, "lock was lost"},
	{"loss ignored", "-lock %L -watchdog 1s -grace 200ms", `trap "" TERM; echo ready; sleep 600`, ready + "DEL %L", exitLost, "is killed"},
	// The output stays open for as long as the child lives.
	{"loss ignored by a child", "-lock %L -watchdog 1s -grace 10m", `sh -c 'trap "" TERM; echo ready; sleep 600' & wait`, ready + "DEL %L", exitLost, ""},
	{"one of two lost", "-lock %L -lock %Lb -watchdog 1s", patient, ready + "DEL %Lb", exitLost, "lock was lost"},

	{"signals handled", "-lock %L", printSignals, ready + "signal HUP; > HUP; signal INT; > INT; signal QUIT; > QUIT; signal TERM; > TERM; signal USR1; > USR1; " +
		"signal TSTP; stderr cannot be suspended; PEXPIRE %L 30000; signal USR2", 9, ""},
	{"signal", "-lock %L", patient, ready + "signal TERM", 128 + 15, ""},
	{"signal while stopped", "-lock %L", "echo ready; kill -STOP $$", ready + "signal INT", 128 + 2, ""},

	{"token", "-kind fenced -lock %L", tokens, "SET redisson_lock_token:{%L} 41; start; > [42] [42]", 0, ""},
	// In the order of the flags, which differs from the order in which the locks are acquired.
	{"tokens", "-kind fenced -lock %Lb -lock %L", tokens, "SET redisson_lock_token:{%L} 41; start; > [] [1 42]", 0, ""},
	{"token of a lock around", "-kind fenced -lock %L", nested + `fair sh -c '` + tokens + `'`, "> [1] [1]", 0, ""},
	{"lock in a lock", "-lock %L", nested + `fenced sh -c '` + tokens + `'`, "> [1] [1]", 0, ""},

	{"minimum time after the end", "-lock %L", `"$0" run -v -lock %Lb -at-least 10m true; "$0" run -lock %Lb -wait 0 echo ran; echo code $?`,
		"> code 75; PEXPIRE %Lb 1", 0, "which stays held until -at-least is over"},

	{"note", "-lock %L -note by-hand", `until "$0" inspect %L | grep by-hand; do sleep 0.1; done`, `> note     "by-hand"`, 0, ""},

	{"several", "-lock %Lb -lock %L", patient, ready + "PEXPIRE %L 30000; PEXPIRE %Lb 30000; eof", 0, ""},
	{"reader with a reader", "-kind read -lock %L echo ran", "", reading + "> ran", 0, ""},
	{"writer with a reader", "-kind write -lock %L -wait 0 echo ran", "", reading, exitHeld, "lock is held"},
	{"reader with a writer", "-kind read -lock %L -wait 0 echo ran", "", writing, exitHeld, "lock is held"},

	{"one of two held", "-lock %Lb -lock %L -wait 0 echo ran", "", held, exitHeld, "lock is held"},
	// While it waits for one lock, other clients can acquire the other.
	{"one of two waited for", "-lock %Lb -lock %L echo ran", "", held + "waits; HSETNX %Lb 9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:2 1; DEL %Lb; " + freed + "> ran", 0, ""},

	{"no command", "-lock x", "", "", exitUsage, "the command is missing"},
	{"empty name", "-lock= true", "", "", exitUsage, "flag -lock: a name is expected"},
	{"same name twice", "-lock x -lock y -lock x true", "", "", exitUsage, `"x" for flag -lock: it is named twice`},
	{"long name", "-lock " + strings.Repeat("x", 513) + " true", "", "", exitUsage, "513 bytes"},
	{"many locks", many(65) + "true", "", "", exitUsage, "a MultiLock of 65 locks: it has 1 to 64"},
	{"unknown kind", "-lock x -kind exclusive true", "", "", exitUsage, "the kinds are fair, fenced, plain, read, write"},
	{"the kind that doctor calls semaphore", "-lock x -kind semaphore -permits 2 true", "", "", exitUsage, "the kinds are"},
	{"no kind", "-lock x -kind= true", "", "", exitUsage, "flag -kind: the kinds are"},
	{"no permits", "-lock x -kind expirable_semaphore true", "", "", exitUsage, "-kind expirable_semaphore needs -permits"},
	{"permits of a lock", "-lock x -permits 2 true", "", "", exitUsage, "-permits is for -kind expirable_semaphore"},
	{"two semaphores", "-lock x -lock y -kind expirable_semaphore -permits 2 true", "", "", exitUsage, "takes one -lock"},
	{"wait without a unit", "-lock x -wait 5 true", "", "", exitUsage, "a duration is expected"},
	{"negative wait", "-lock x -wait -1s true", "", "", exitUsage, "must not be negative"},
	{"no lease", "-lock x -lease 0 true", "", "", exitUsage, "a lease"},
	{"short lease", "-lock x -lease 1ms true", "", "", exitUsage, "the lease is 1ms"},
	{"minimum time of a reader", "-lock x -kind read -at-least 1s true", "", "", exitUsage, "a minimum time is for"},
	{"long note", "-lock x -note " + strings.Repeat("x", 257) + " true", "", "", exitUsage, "257 bytes"},
	{"no watchdog", "-lock x -watchdog 0 true", "", "", exitUsage, "-watchdog must not be 0"},
	{"too few replicas", "-lock %L -replicas 1 -wait 2500ms echo ran", "", "", exitUnavailable, "0 of the 1 replicas"},
	{"negative replicas", "-lock x -replicas -1 true", "", "", exitUsage, "-replicas must not be negative"},
	{"no exit code", "-lock x -held-exit 256 true", "", "", exitUsage, "-held-exit must be from 0 to 255"},
	{"negative grace", "-lock x -grace -1s true", "", "", exitUsage, "-grace must not be negative"},
	{"unknown flag", "-lock x -nonsense true", "", "", exitUsage, "-nonsense"},
	{"unknown URL option", "-lock x -redis redis://127.0.0.1:1?retries=3 true", "", "", exitUsage, "unknown option"},
	{"command not found", "-lock x no-such-command", "", "", exitNotFound, "no-such-command"},
	{"not executable", "-lock x /dev/null", "", "", exitNotRun, "/dev/null"},
	{"reserved name", "-lock lockkeeper_wait_queue:{%L} true", "", "", exitUsage, "reserved"},
	{"name in braces", "-lock x -lock {%L} true", "", "", exitUsage, "share its queue"},
	{"another type", "-lock %L true", "", "SET %L x; start", exitUnavailable, "WRONGTYPE"},
	{"no server", "-lock x -redis redis://127.0.0.1:1 true", "", "", exitUnavailable, "refused"},
}

func TestRun_ExitsAsItsCommandOrItsLockSays(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, lock := redistest.Shared(t), redistest.Name(t)
			var p *process
			begin := func() {
				args := strings.Fields(strings.ReplaceAll(c.flags, "%L", lock))
				if c.script != "" {
					args = append(args, "sh", "-c", strings.ReplaceAll(c.script, "%L", lock), program(t).Path)
				}
				p = under(t, server, args...)
			}
			if !strings.Contains(c.steps, "start") {
				begin()
			}
			for step := range strings.SplitSeq(strings.ReplaceAll(c.steps, "%L", lock), "; ") {
				verb, rest, _ := strings.Cut(step, " ")
				switch verb {
				case "":
				case "start":
					begin()
				case ">":
					p.expectLine(rest)
				case "signal":
					p.signal(rest)
				case "stderr":
					redistest.Eventually(t, rest, func() bool { return strings.Contains(p.stderrText(), rest) })
				case "waits":
					server.AwaitSubscribers(t, "redisson_lock__channel:{"+lock+"}", 1)
				case "eof":
					p.stdin.Close()
				default:
					n, err := server.Do(t, strings.Fields(step)...).AsInt64()
					if (verb == "PEXPIRE" || verb == "HSETNX") && (n != 1 || err != nil) {
						t.Errorf("%s: %d, %v", step, n, err)
					}
				}
			}
			p.expectExit(c.code, c.text)
			quiet := c.code < exitUsage || c.code > exitSignal
			if quiet && c.text == "" && !strings.Contains(c.steps, "stderr") && p.stderrText() != "" {
				t.Errorf("stderr: %s", p.stderrText())
			}
			if c.code == exitLost && strings.Count(p.stderrText(), ": lock was lost") != 1 {
				t.Errorf("the loss is not printed once: %s", p.stderrText())
			}
			if strings.Contains(c.steps, "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1") && !strings.Contains(c.steps, freed) {
				if owners := fmt.Sprint(server.Do(t, "HKEYS", lock).AsStrSlice()); !strings.Contains(owners, "9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1") {
					t.Errorf("the lock of the other client was released, and the owners are %v", owners)
				}
				server.Do(t, "DEL", lock, "{"+lock+"}:9f1c8f0a-6b1d-4a53-9a5e-2f4b7c1d0e88:1:rwlock_timeout:1")
			}
			if c.code != exitUnavailable { // then the key is not a lock
				expectNothingLeft(t, server, lock)
			}
		})
	}
}

func many(n int) (flags string) {
	for i := range n {
		flags += fmt.Sprintf("-lock %d ", i)
	}
	return flags
}

// The command gets its arguments, its input and its outputs.
func TestRun_HoldsTheLockWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	server, lock := redistest.Shared(t), redistest.Name(t)
	cmd := program(t, "run", "-v", "-lock", lock, "-watchdog", "20s", "sh", "-c", `echo "$0 $1"; cat; echo bye >&2`, "a b", "$c")
	cmd.Env = append(cmd.Env, "REDIS_URL="+server.URL())
	p := start(t, cmd)
	p.expectLine("a b $c")
	if ttl, err := server.Do(t, "PTTL", lock).AsInt64(); err != nil || ttl <= 0 || ttl > 20_000 {
		t.Errorf("held for %d ms, %v", ttl, err)
	}
	fmt.Fprintln(p.stdin, "hello")
	p.expectLine("hello")
	p.stdin.Close()
	p.expectExit(0, fmt.Sprintf("has the lock %q", lock), "bye\n", "has given the lock")
	expectNothingLeft(t, server, lock)
}

// No error about a URL or its password shows the password.
func TestPasswords_AreNotShown(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "s3cr3t-right")
	for password, want := range map[string]struct {
		code int
		text string
	}{
		"":               {exitUnavailable, "NOAUTH"},
		":s3cr3t-wrong@": {exitUnavailable, "WRONGPASS"},
		":s3cr3t/slash@": {exitUsage, "redis URL"},
		":s3cr3t%zz@":    {exitUsage, "redis URL"},
		":s3cr3t-right@": {0, "has the lock"},
	} {
		p := under(t, server, "-v", "-redis", strings.Replace(server.URL(), "//", "//"+password, 1), "-lock", "x", "true")
		p.expectExit(want.code, want.text)
		if strings.Contains(p.stderrText(), "s3cr3t") {
			t.Errorf("the password is shown: %s", p.stderrText())
		}
	}
}

// Without a server the lock is lost when the lease ends. Redis cannot confirm the release then, so the
// program does not wait for it.
func TestRun_LosesTheLockWithItsLeaseWithoutRedis(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		stop func(*redistest.Server, testing.TB)
		text string
	}{
		"killed":                    {"-watchdog", (*redistest.Server).Kill, "cannot be renewed at present"},
		"frozen":                    {"-watchdog", (*redistest.Server).Pause, "no renewal succeeded in time"},
		"frozen, and a fixed lease": {"-lease", (*redistest.Server).Pause, "its fixed lease of 1s is over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := under(t, server, "-lock", "x", c.flag, "1s", "sh", "-c", patient)
			p.expectLine("ready")
			c.stop(server, t)
			redistest.Eventually(t, "the loss is printed", func() bool { return strings.Contains(p.stderrText(), "lock was lost") })
			printed := time.Now()
			p.expectExit(exitLost, c.text)
			if took := time.Since(printed); took > 4*time.Second { // a release waits for 5 s
				t.Errorf("it ended %v after it had printed the loss", took)
			}
		})
	}
}

// Ignored signals stay ignored, as nohup requires.
func TestSignals_IgnoredOnesStayIgnored(t *testing.T) {
	t.Parallel()
	cmd := program(t, "run", "-redis", redistest.Shared(t).URL(), "-lock", redistest.Name(t), "sh", "-c", patient)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, cmd.Args...)
	p := start(t, cmd)
	p.expectLine("ready")
	p.signal("HUP")
	p.stdin.Close()
	p.expectExit(0)
}

// A message that cannot be written, since its reader has gone, ends neither the command nor the release of its lock.
func TestRun_OutlivesTheReaderOfItsMessages(t *testing.T) {
	t.Parallel()
	server, lock := redistest.Shared(t), redistest.Name(t)
	cmd := program(t, "run", "-v", "-redis", server.URL(), "-lock", lock, "sh", "-c", `trap "" USR1; echo ready; cat; exit 7`)
	reader, stderr, err := os.Pipe()
	check(err)
	cmd.Stderr = stderr
	p := start(t, cmd)
	check(stderr.Close())
	p.expectLine("ready")
	check(reader.Close())
	p.signal("USR1") // which it passes on, and says so
	p.stdin.Close()
	p.expectExit(7)
	expectNothingLeft(t, server, lock)
}

// A command ends with its lock although the messages are not read, as on a terminal that is stopped with Ctrl-S.
func TestRun_EndsTheCommandThoughItsMessagesAreNotRead(t *testing.T) {
	t.Parallel()
	server, lock := redistest.Shared(t), redistest.Name(t)
	reader, stderr, err := os.Pipe()
	check(err)
	defer reader.Close()
	check(stderr.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)))
	for full := false; !full; {
		_, err := stderr.Write(make([]byte, 1<<20))
		full = errors.Is(err, os.ErrDeadlineExceeded)
	}
	check(syscall.SetNonblock(int(stderr.Fd()), false))
	cmd := program(t, "run", "-redis", server.URL(), "-lock", lock, "-watchdog", "1s", "sh", "-c", "exec 2>/dev/null; "+printTerm)
	cmd.Stderr = stderr
	p := start(t, cmd)
	check(stderr.Close())
	p.expectLine("ready")
	server.Do(t, "DEL", lock)
	p.expectLine("terminated")
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	p.expectExit(exitLost)
}

// A command must not continue when its lock is no longer renewed.
func TestKilledProgram_EndsTheCommand(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux notifies a process of the death of its parent")
	}
	server, lock := redistest.Shared(t), redistest.Name(t)
	p := under(t, server, "-lock", lock, "-watchdog", "1s", "sh", "-c", printTerm)
	p.expectLine("ready")
	p.signal("KILL")
	p.expectLine("terminated")
	redistest.Eventually(t, "the lock has expired", func() bool { return len(server.Keys(t, lock)) == 0 })
}

// As many commands run as there are permits, whose number the first command has set; the permit of a killed
// one becomes free.
func TestSemaphore_LimitsTheCommands(t *testing.T) {
	t.Parallel()
	server, name := redistest.Shared(t), redistest.Name(t)
	run := func(permits string, args ...string) *process {
		return under(t, server, append([]string{"-lock", name, "-kind", "expirable_semaphore", "-watchdog", "1s", "-permits", permits}, args...)...)
	}
	first := run("1", "sh", "-c", patient)
	first.expectLine("ready")
	run("9", "-wait", "0", "echo", "ran").expectExit(exitHeld, "too few permits are free")
	second := run("9", "-v", "echo", "ran")
	server.AwaitSubscribers(t, "redisson_sc:{"+name+"}", 1)
	first.signal("KILL")
	second.expectLine("ran")
	second.expectExit(0, fmt.Sprintf("has given a permit of %q back", name))
	if free, err := server.Do(t, "GET", name).AsInt64(); free != 1 || err != nil {
		t.Errorf("%d permits are free in the end, %v", free, err)
	}
	server.Do(t, "DEL", name)
}
