package redisio

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

var update = flag.Bool("acl.update", false, "write the rules into docs/acl.md")

// readerCommands are the ACL rules for the commands of package inspect; cmd/lockkeeper has the tests.
const readerCommands = "+cluster|shards +cluster|slots +exists +get +getrange +hlen +hmget +hrandfield +hstrlen +llen +lrange" +
	" +ping +pttl +pubsub|channels +pubsub|numsub +scan +time +type +zcount +zrange"

// docs/acl.md has the rules that ACL returns; `make generate` writes them.
func TestACL_IsInTheDocument(t *testing.T) {
	const file, begin, end = "../docs/acl.md", "<!-- rules -->\n", "<!-- end of rules -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no section for the rules", file)
	}
	var rules strings.Builder
	of := map[string][]string{} // the rules by kind
	for _, r := range ACL() {
		of[r.Kind] = strings.Fields(r.Rules(OneServer, "locks:"))
		what, added := r.Kind, append([]string{"on", ">PASSWORD"}, of[r.Kind]...)
		if r.Kind == "MultiLock" || r.Kind == "RedLock" || r.Kind == "singleton" {
			if r.Kind == "MultiLock" {
				what += " with fair or read/write members"
			}
			what += ", besides the rules for plain locks"
			added = slices.DeleteFunc(of[r.Kind], func(rule string) bool { return slices.Contains(of["plain and fenced"], rule) })
		}
		fmt.Fprintf(&rules, "\n%s:\n\n```\nACL SETUSER locker %s\n```\n", what, strings.Join(added, " "))
	}
	keys := strings.Join(slices.DeleteFunc(of["all kinds"], func(rule string) bool { return rule[0] != '~' }), " ")
	fmt.Fprintf(
		&rules,
		"\nA reader (`ls`, `inspect`, `watch`, the console's `WithFleet`), with `~` for `%%R~` before Redis 7:\n\n"+
			"```\nACL SETUSER reader on >PASSWORD %s %s\n```\n",
		readerCommands, strings.ReplaceAll(keys, "~", "%R~"),
	)
	fmt.Fprintf(
		&rules,
		"\nWith Sentinel, on the servers:\n\n```\nACL SETUSER locker +%[1]s\nACL SETUSER reader +%[1]s\n```\n"+
			"\nOn the Sentinels, then `SENTINEL FLUSHCONFIG`; in the URL `&sentinel_username=watcher&sentinel_password=PASSWORD`:\n\n"+
			"```\nACL SETUSER watcher on >PASSWORD %[2]s\n```\n",
		strings.Join(clientCommands[Sentinels], " +"), SentinelRules,
	)
	fmt.Fprintf(
		&rules,
		"\nIn a cluster, on every server:\n\n```\nACL SETUSER locker +%s\nACL SETUSER reader +asking +pubsub|shardchannels +pubsub|shardnumsub\n```\n",
		strings.Join(clientCommands[InCluster], " +"),
	)
	fmt.Fprintf(&rules, "\nWith `Config.Replicas`:\n\n```\nACL SETUSER locker %s\n```\n", replicaRules)
	want := before + begin + rules.String() + "\n" + end + after
	if *update {
		err = os.WriteFile(file, []byte(want), 0o644)
	} else if string(text) != want {
		err = fmt.Errorf("%s is not up to date: run `make generate`", file)
	}
	if err != nil {
		t.Error(err)
	}
}

// ACL covers all scripts, all commands of the scripts, and all keys and channels that package keyspace derives.
func TestACL_IsComplete(t *testing.T) {
	all := ACL()[len(ACL())-1]
	var known []string
	for _, name := range slices.Concat(all.keys, all.channels) {
		f := runtime.FuncForPC(reflect.ValueOf(name.from).Pointer()).Name()
		known = append(known, f[strings.LastIndex(f, ".")+1:])
	}
	var used string
	files, _ := filepath.Glob("../internal/*/*.go")
	users, _ := filepath.Glob("../actors/*.go")
	for _, file := range append(files, users...) {
		text, _ := os.ReadFile(file)
		used += string(text)
	}
	keys, err := parser.ParseFile(token.NewFileSet(), "../internal/keyspace/keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, d := range keys.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !f.Name.IsExported() || f.Name.Name == "Slot" || f.Name.Name == "AskedChannel" ||
			strings.HasSuffix(f.Name.Name, "SystemOf") || f.Type.Params.NumFields() > 1 {
			continue // it returns no key or channel, or one with the same beginning as another function
		}
		if !strings.Contains(used, "keyspace."+f.Name.Name+"(") {
			continue
		}
		if checked++; !slices.Contains(known, f.Name.Name) {
			t.Errorf("no kind of lock in acl.go has the names of %s", f.Name.Name)
		}
	}
	if checked < 10 {
		t.Errorf("only %d functions of package keyspace are used", checked)
	}
	anyCall := regexp.MustCompile(`(?:redis\.p?call|call_if_here\)?)\((.{6})`)
	for _, s := range scripts.All {
		isOfGrains := strings.HasPrefix(s.Name, "grains_") // TestDirectory_NeedsTheRightsOfPlainLocks of package grains
		if !isOfGrains && !slices.Contains(all.scripts, s) {
			t.Errorf("no kind of lock in acl.go has the script %s", s.Name)
		}
		for _, m := range anyCall.FindAllStringSubmatch(regexp.MustCompile(`--[^\n]*`).ReplaceAllString(s.Source, ""), -1) {
			if !regexp.MustCompile(`^('[A-Z]|PUBLIS|\.\.\.\))`).MatchString(m[1]) {
				t.Errorf("%s: the command of a call is not in the text: %s", s.Name, m[0])
			}
		}
	}
}

func TestACL_RulesHaveThePrefix(t *testing.T) {
	rights := map[string]Rights{}
	for _, r := range ACL() {
		rights[r.Kind] = r
	}
	for _, c := range []struct{ kind, prefix, want string }{
		{
			"plain and fenced", "a:",
			"~a:* ~lockkeeper_wait_order:a:*{* ~lockkeeper_wait_order:{a:*} ~lockkeeper_wait_queue:a:*{* ~lockkeeper_wait_queue:{a:*} " +
				"~redisson_lock_token:a:*{* ~redisson_lock_token:{a:*} " +
				"&lockkeeper_turn:* &lockkeeper_waiters:a:*{* &lockkeeper_waiters:{a:*} &redisson_lock__channel:a:*{* &redisson_lock__channel:{a:*}",
		},
		{"plain and fenced", "", "~* &lockkeeper_turn:* &lockkeeper_waiters:* &redisson_lock__channel:*"},
		{
			"plain and fenced", "{a}",
			"~lockkeeper_wait_order:{a}* ~lockkeeper_wait_queue:{a}* ~redisson_lock_token:{a}* ~{a}* " +
				"&lockkeeper_turn:* &lockkeeper_waiters:{a}* &redisson_lock__channel:{a}*",
		},
		{
			"fair", "a?",
			`~a\?* ~lockkeeper_wait_order:a\?*{* ~lockkeeper_wait_order:{a\?*} ~lockkeeper_wait_queue:a\?*{* ~lockkeeper_wait_queue:{a\?*} ` +
				`~redisson_lock_queue:a\?*{* ~redisson_lock_queue:{a\?*} ~redisson_lock_timeout:a\?*{* ~redisson_lock_timeout:{a\?*} ` +
				`&lockkeeper_turn:* &lockkeeper_waiters:a\?*{* &lockkeeper_waiters:{a\?*} ` +
				`&redisson_lock__channel:a\?*{* &redisson_lock__channel:a\?*{*:* &redisson_lock__channel:{a\?*} &redisson_lock__channel:{a\?*}:*`,
		},
		{
			"read/write", "a:",
			"~a:* ~lockkeeper_read_write_order:a:*{* ~lockkeeper_read_write_order:{a:*} ~lockkeeper_read_write_queue:a:*{* ~lockkeeper_read_write_queue:{a:*} " +
				"~lockkeeper_wait_order:a:*{* ~lockkeeper_wait_order:{a:*} ~lockkeeper_wait_queue:a:*{* ~lockkeeper_wait_queue:{a:*} ~{a:*}:* " +
				"&lockkeeper_turn:* &lockkeeper_waiters:a:*{* &lockkeeper_waiters:{a:*} &redisson_rwlock:a:*{* &redisson_rwlock:{a:*}",
		},
	} {
		if rules := rights[c.kind].Rules(OneServer, c.prefix); !strings.HasSuffix(rules, c.want) {
			t.Errorf("%s, prefix %q: the rules %s do not end with %s", c.kind, c.prefix, rules, c.want)
		}
	}
}
