//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient/slots"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

var doctorHelp = `usage: lockkeeper doctor [-redis URL] [-prefix P] [--json] [-kind KIND …]

Checks whether this Redis is suitable for locks with the rights of this user, and prints what to
change: version, permissions, eviction, memory, persistence, replicas, clock, round trips, the state
of a cluster, scripts that use keys which they do not declare, the records of Systems, and semaphores
whose permits are in use although no number of permits is set.

To test that locks work, one System acquires a lock of each kind, also a MultiLock but no RedLock, and a
permit of a semaphore and one that expires, and closes a latch; another System waits for it, and must be
woken by a message. Their names begin with lockkeeper_doctor. Else it changes only the list of Systems,
in which it is meanwhile. If a server of a cluster does not answer, doctor reports it, and checks the
others. Singletons are not tried.

` + accessHelp + `  -kind KIND     tries only this kind, and does not check the numbers of permits, so that it needs only
                 the rights for this kind; may be given more than once. The kinds are
                 ` + strings.Join(trialKinds(), ", ") + `

ok: no change is needed. warn: locks work, but may be lost, refused or slow. fail: this must be
changed. unknown: the user lacks the rights to check it, or a server does not answer. In addition to
the rights for locks, doctor needs +info, +pubsub|numsub, in a cluster +cluster|info, and for the
numbers of permits the rights of ls. For these it scans all keys, as ls does, for at most 10 s.

The exit code is 0, or 1 if a line says fail. 64: the command line is wrong. 69: Redis
cannot be reached, or refuses.

  lockkeeper doctor -redis rediss://redis.example.org
`

// doctor contains the options and the results of the subcommand doctor.
type doctor struct {
	access
	// kinds are the kinds to try.
	kinds    []string
	client   rueidis.Client
	findings []finding
}

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
	// Server is set if there are several servers.
	Server string `json:"server,omitempty"`
}

const (
	isOK      = "ok"
	isWarning = "warn"
	isFailure = "fail"
	isUnknown = "unknown"
)

func (d *doctor) flags() *flag.FlagSet {
	flags := d.access.flags("doctor")
	flags.Func("kind", "", func(kind string) error {
		if !slices.Contains(trialKinds(), kind) {
			return fmt.Errorf("the kinds are %s", strings.Join(trialKinds(), ", "))
		}
		d.kinds = append(d.kinds, kind)
		return nil
	})
	return flags
}

// examine runs the subcommand doctor.
func examine(args []string, env environment) int {
	d := doctor{access: access{environment: env}}
	if code, ok := d.parse(d.flags(), args, doctorHelp, d.none); !ok {
		return code
	}
	all := d.kinds == nil
	if all {
		d.kinds = trialKinds()
	}
	return d.with(func(ctx context.Context, client rueidis.Client) (int, error) {
		d.client = client
		nodes, err := slots.Masters(ctx, client)
		if err != nil {
			d.add("masters", isFailure, err.Error(), unservedAdvice)
		}
		var reached rueidis.Client
		for _, address := range slices.Sorted(maps.Keys(nodes)) {
			from := len(d.findings)
			if err := d.checkNode(ctx, nodes[address]); err == nil {
				reached = nodes[address]
			} else if len(nodes) == 1 {
				return 0, err
			} else {
				d.add("ping", isFailure, err.Error(), unservedAdvice)
			}
			for i := range d.findings[from:] {
				if len(nodes) > 1 {
					d.findings[from+i].Server = address
				}
			}
		}
		if client.Mode() == rueidis.ClientModeCluster && reached != nil {
			d.checkCluster(ctx, reached)
		}
		d.checkScripts(ctx)
		if all {
			d.checkPermits(ctx)
		}
		d.checkLocks(ctx)
		d.checkSystems(ctx)
		return d.report()
	})
}

const unservedAdvice = "until it answers, or another takes over, the locks in its slots cannot be acquired"

// checkNode checks one server. It returns an error if the server cannot be reached.
func (d *doctor) checkNode(ctx context.Context, node rueidis.Client) error {
	err := node.Do(ctx, node.B().Ping().Build()).Error()
	if _, refused := rueidis.IsRedisErr(err); refused {
		d.add("ping", isFailure, err.Error(), "the ACL user needs +ping, which detects dead connections")
	} else if err != nil {
		return redisio.Classify(err)
	}
	d.checkServer(ctx, node)
	return nil
}

// add adds a finding; advice is empty if there is nothing to do.
func (d *doctor) add(check, status, found, advice string) {
	d.findings = append(d.findings, finding{
		Check: check, Status: status,
		Found:  pointers.ReplaceAllString(found, ""),
		Advice: pointers.ReplaceAllString(advice, ""),
	})
}

// unknown adds a check that could not be made: a server does not answer, or the user lacks rights.
func (d *doctor) unknown(check string, err error, rights string) {
	advice := rights
	if redisio.Classify(err).Transient {
		advice = "the server must answer before doctor can check this"
	}
	d.add(check, isUnknown, err.Error(), advice)
}

// pointers matches the references in errors about rights, which would point to doctor itself.
var pointers = regexp.MustCompile(`; docs/acl\.md [^)]*`)

func (d *doctor) report() (code int, err error) {
	if slices.ContainsFunc(d.findings, func(f finding) bool { return f.Status == isFailure }) {
		code = exitNo
	}
	if d.json {
		return code, printEach(d.access, d.findings)
	}
	for _, f := range d.findings {
		where := ""
		if f.Server != "" {
			where = " (" + f.Server + ")"
		}
		fmt.Fprintf(d.stdout, "%-8s%-21s%s%s\n", f.Status, f.Check, shown(f.Found), where)
		if f.Advice != "" {
			fmt.Fprintf(d.stdout, "%29s%s\n", "", shown(f.Advice))
		}
	}
	return code, nil
}

// checkServer checks one server.
func (d *doctor) checkServer(ctx context.Context, node rueidis.Client) {
	text, err := node.Do(ctx, node.B().Info().Build()).ToString()
	if err != nil {
		d.unknown("info", err, "+info lets doctor check version, eviction, persistence and replicas")
	} else {
		info := infoOf(text)
		d.checkVersion(info)
		d.checkReplication(ctx, node, info)
		d.checkMemory(info)
		d.checkPersistence(info)
	}
	d.checkClock(ctx, node)
}

// infoOf reads the reply to INFO.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // prefix of a verbatim string in RESP3
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func (d *doctor) checkVersion(info map[string]string) {
	var major, minor int
	version := info["redis_version"]
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	if major < 6 || major == 6 && minor < 2 {
		d.add("version", isFailure, version, "Lockkeeper needs Redis 6.2 or later")
		return
	}
	d.add("version", isOK, fmt.Sprintf("%s, %s", version, info["redis_mode"]), "")
}

func (d *doctor) checkReplication(ctx context.Context, node rueidis.Client, info map[string]string) {
	replicas, _ := strconv.Atoi(info["connected_slaves"])
	switch {
	case info["role"] == "slave":
		d.add("replicas", isFailure, "this server is a replica", "connect to the master, or to a Sentinel with master_set")
	case replicas == 0:
		d.add("replicas", isOK, "none: while this server is down, no lock can be acquired", "")
	default:
		advice := "set Config.Replicas, protect"
		if err := node.Do(ctx, node.B().Wait().Numreplicas(0).Timeout(1).Build()).Error(); err != nil {
			advice = "Config.Replicas cannot be set, since WAIT fails (" + redisio.Classify(err).Error() + "); protect"
		}
		d.add("replicas", isWarning, fmt.Sprintf("%d: a failover may lose the latest locks", replicas),
			advice+" data by fencing tokens, or use a RedLock; min-replicas-to-write bounds what a master without replicas accepts")
	}
}

func (d *doctor) checkMemory(info map[string]string) {
	policy, maxMemory, used := info["maxmemory_policy"], number(info["maxmemory"]), number(info["used_memory"])
	const advice = "maxmemory-policy noeviction, or a separate Redis for the locks"
	switch {
	case policy != "noeviction" && maxMemory > 0:
		d.add("eviction", isFailure, policy+": a lock may be evicted while it is held", advice)
	case policy != "noeviction":
		d.add("eviction", isWarning, policy+", but there is no maxmemory", advice+", before a maxmemory is set")
	default:
		d.add("eviction", isOK, policy, "")
	}
	switch {
	case maxMemory > 0 && used >= maxMemory:
		d.add("memory", isFailure,
			fmt.Sprintf("%d of %d bytes are used: no lock can be acquired", used, maxMemory),
			"a higher maxmemory, or fewer keys")
	case maxMemory > 0 && used > maxMemory/10*9:
		d.add("memory", isWarning,
			fmt.Sprintf("%d of %d bytes are used: when it is full, no lock can be acquired", used, maxMemory),
			"a higher maxmemory, or fewer keys")
	case maxMemory > 0:
		d.add("memory", isOK, fmt.Sprintf("%d of %d bytes are used", used, maxMemory), "")
	default:
		d.add("memory", isOK, fmt.Sprintf("%d bytes are used, there is no maxmemory", used), "")
	}
}

func (d *doctor) checkPersistence(info map[string]string) {
	switch {
	case info["loading"] == "1":
		d.add("persistence", isWarning, "the server is loading its data", "locks have to wait for that")
	case info["aof_last_write_status"] == "err" || info["rdb_last_bgsave_status"] == "err":
		d.add("persistence", isFailure, "the server cannot save, and refuses writes (MISCONF)", "look at its log: is the disk full?")
	case info["aof_enabled"] == "1":
		d.add("persistence", isOK, "appendonly: a restart keeps the locks, except those of the last second unless appendfsync is always", "")
	default:
		d.add("persistence", isWarning, "no append-only file: a restart loses the locks of running processes",
			"appendonly yes; or start the server again only after the longest lease")
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// maxSkew is the difference between the clocks of the server and of this machine that is not reported.
const maxSkew = time.Second

// checkClock compares the server's clock with the local one, by the fastest of a few round trips.
func (d *doctor) checkClock(ctx context.Context, node rueidis.Client) {
	fastest, skew := time.Duration(-1), time.Duration(0)
	for range 10 {
		sent := time.Now()
		parts, err := node.Do(ctx, node.B().Time().Build()).AsIntSlice()
		trip := time.Since(sent)
		if err == nil && len(parts) != 2 {
			err = errors.New("TIME does not return two numbers")
		}
		if err != nil {
			d.unknown("clock", err, "+time lets doctor compare the clocks")
			return
		}
		if fastest < 0 || trip < fastest {
			fastest, skew = trip, time.Unix(parts[0], parts[1]*1000).Sub(sent.Add(trip/2))
		}
	}
	text := fmt.Sprintf("within %v of the local clock", (skew.Abs() + time.Millisecond).Round(time.Millisecond))
	if skew.Abs() > maxSkew {
		d.add("clock", isWarning, text, "synchronize the clocks (NTP): a fair lock shared with Java compares them; leases do not depend on them")
	} else {
		d.add("clock", isOK, text, "")
	}
	if text := fmt.Sprintf("%v", fastest.Round(10*time.Microsecond)); fastest > 50*time.Millisecond {
		d.add("round trip", isWarning, text, "every grant needs one: is there a closer server?")
	} else {
		d.add("round trip", isOK, text, "")
	}
}

// checkCluster checks the state of a cluster, as one of its servers reports it.
func (d *doctor) checkCluster(ctx context.Context, node rueidis.Client) {
	if err := node.Do(ctx, node.B().ClusterSlots().Build()).Error(); err != nil {
		d.add("cluster", isFailure, err.Error(),
			"the ACL user needs +cluster|slots (Redis 8: +cluster|shards), to find the servers, and +asking, while slots move")
		return
	}
	text, err := node.Do(ctx, node.B().ClusterInfo().Build()).ToString()
	info := infoOf(text)
	switch state, served := info["cluster_state"], info["cluster_slots_ok"]; {
	case err != nil:
		d.unknown("cluster", err, "+cluster|info lets doctor see the state of the cluster")
	case state != "ok" || served != "16384":
		d.add("cluster", isFailure, fmt.Sprintf("the state is %s, and %s of 16384 slots are served", state, served),
			"CLUSTER NODES says which slots are not served")
	default:
		d.add("cluster", isOK, "all slots are served", "")
	}
}

// scanTime bounds the scan of all keys.
const scanTime = 10 * time.Second

// checkPermits looks for semaphores and latches with a missing or invalid number.
func (d *doctor) checkPermits(ctx context.Context) {
	const check, shownMost = "numbers", 3
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	all, err := inspect.Inspector{Client: d.client, Prefix: d.prefix}.Counters(ctx, "*")
	var bad []string
	for _, c := range all {
		if c.Problem != "" {
			bad = append(bad, fmt.Sprintf("%s (%s): %s", shown(c.Name), c.Kind, c.Problem))
		}
	}
	switch n := len(bad); {
	case n > 0:
		text := strings.Join(bad[:min(n, shownMost)], "; ")
		if n > shownMost {
			text += fmt.Sprintf("; and %d more: lockkeeper ls", n-shownMost)
		}
		d.add(check, isWarning, text,
			"delete a value that is not a number, and set the number with TrySetPermits; "+
				"for a semaphore only when the work under its earlier permits has ended")
	case err != nil:
		d.unknown(check, err, "with the rights of lockkeeper ls, doctor can check the numbers of semaphores and permits")
	default:
		d.add(check, isOK, fmt.Sprintf("%d semaphores, latches and permits were found, and all have their numbers", len(all)), "")
	}
}

// checkSystems looks for Systems that no longer renew their records.
func (d *doctor) checkSystems(ctx context.Context) {
	all, err := inspect.Inspector{Client: d.client, Prefix: d.prefix}.Systems(ctx)
	more := ""
	if errors.Is(err, inspect.ErrMoreSystems) {
		more = "at least "
	} else if err != nil {
		d.unknown("systems", err, "+zrange +getrange +pttl on {lockkeeper_systems}* let doctor list the Systems")
		return
	}
	var overdue []string
	for _, v := range all {
		if v.Overdue {
			overdue = append(overdue, fmt.Sprintf("%s on %s, pid %d", v.Application, v.Host, v.PID))
		}
	}
	if len(overdue) > 0 {
		d.add("systems", isWarning,
			fmt.Sprintf("%d of %s%d are overdue: %s",
				len(overdue), more, len(all), strings.Join(overdue[:min(len(overdue), 3)], "; ")),
			"they are dead, hang, or cannot reach Redis: lockkeeper ls -systems")
		return
	}
	d.add("systems", isOK, fmt.Sprintf("%s%d have a record with the key prefix %q", more, len(all), d.prefix), "")
}
