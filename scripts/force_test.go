package scripts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/keyspace"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// Of a hash with many owners only some fields are checked. A field of another application may be missed, but stays, and
// then without a TTL; it is not shown, even if it looks like an owner.
func TestManyOwners_HideNoForeignField(t *testing.T) {
	const owners = 20
	fill := func(t *testing.T, d *db, lock, field, mode string) {
		for owner := range owners {
			d.must(t, "HSET", lock, long(fmt.Sprint("u:", owner)), "1")
		}
		d.must(t, "HSET", lock, field, "dark")
		if mode != "" {
			d.must(t, "HSET", lock, "mode", mode)
		}
		d.must(t, "PEXPIRE", lock, "60000")
	}
	d := onRedis(t)
	for _, test := range []struct {
		script     *scripts.Script
		args, mode string
		fields     []string
	}{
		{scripts.ForceRelease, "channel", "", []string{"mode", "color", "v:57"}},
		{scripts.FairForceRelease, "queue timeouts channel", "", []string{"mode", "color", "v:57"}},
		{scripts.ReadWriteForceRelease, "holds read channel", "", []string{"mode", "color", "v:57"}},
		{scripts.ReadWriteForceRelease, "holds read channel", "read", []string{"color", "v:57"}},
	} {
		missed := 0
		for i := range 60 {
			lock, field := redistest.Name(t), long(test.fields[i%len(test.fields)])
			args := append(strings.Fields(test.args), field)
			for owner := range owners {
				args = append(args, long(fmt.Sprint("u:", owner)))
			}
			fill(t, d, lock, field, test.mode)
			reply := d.run(t, test.script, []string{lock}, args)
			if got := d.do(t, "HGET", lock, field); got != "dark" {
				t.Fatalf("%s: after the reply %q, the field %s is %q", test.script.Name, reply, field, got)
			}
			if reply == "1" {
				missed++
				if ttl := d.do(t, "PTTL", lock); ttl != "-1" {
					t.Fatalf("%s: the field %s has a TTL of %s ms", test.script.Name, field, ttl)
				}
			}
		}
		if missed == 60 {
			t.Errorf("%s: the field was never seen", test.script.Name)
		}
	}
	for range 20 {
		lock := redistest.Name(t)
		fill(t, d, lock, long("v:57"), "read")
		if reply := d.run(t, scripts.ReadWriteInspect, []string{lock}, []string{"channel"}); strings.Contains(reply, "v:57") {
			t.Fatalf("an inspection shows %s", reply)
		}
	}
}

// A hash with too many fields to check also keeps the fields of another application.
func TestReadWriteRelease_KeepsManyForeignFields(t *testing.T) {
	d := onRedis(t)
	lock := redistest.Name(t)
	holds := keyspace.Holds(lock)
	d.must(t, "HSET", lock, "mode", "read", "u:1", "1")
	d.must(t, "SET", holds+":"+long("u:1")+":rwlock_timeout:1", "1", "PX", "60000")
	for i := range 1001 {
		d.must(t, "HSET", lock, fmt.Sprint("field", i), "dark")
	}
	d.must(t, "PEXPIRE", lock, "60000")
	d.run(t, scripts.ReadWriteRelease, []string{lock}, []string{long("u:1"), holds, "channel", keyspace.WaitQueue(lock), "500 1 0"})
	if fields, ttl := d.do(t, "HLEN", lock), d.do(t, "PTTL", lock); fields != "1002" || ttl != "-1" { // with the mode
		t.Errorf("after the release there are %s fields, with a TTL of %s ms", fields, ttl)
	}
}
