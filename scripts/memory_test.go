package scripts_test

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A server grants only re-entries until its memory is old enough by the clocks of the callers; its uptime
// by its own clock does not count. An inspection of the memory and a vote return the same.
func TestMajorityAcquire_QuarantinesNewMemory(t *testing.T) {
	d := onRedis(t)
	lock := redistest.Name(t)
	record := names(lock).Replace("RECORD")
	redistest.Eventually(t, "the server to be up for a second by its own clock", func() bool {
		return !strings.Contains(d.do(t, "INFO", "server"), "uptime_in_seconds:0")
	})
	first := ""
	for _, step := range []struct{ what, args, sets, reply, memory, age string }{
		{what: "never seen", args: "quarantine=1000 new=one known=-", reply: "[-3 1000 ", memory: ":one]", age: "0"},
		{what: "watched under another name", args: "quarantine=1000 new=two known=another since=5000", reply: "[-3 1000 ", memory: ":one]", age: "0"},
		{what: "watched for almost long enough", args: "quarantine=1000 new=two known=KNOWN since=999", reply: "[-3 1 ", memory: ":one]", age: "999"},
		{what: "the age counts for other callers", args: "quarantine=1000 new=two known=-", reply: "[-3 1 ", memory: ":one]", age: "999"},
		{what: "watched for long enough", args: "quarantine=1000 new=two known=KNOWN since=1000", reply: "[1 0 ", memory: ":one]", age: "1000"},
		{what: "re-entry", args: "count=2 quarantine=5000 new=two known=-", reply: "[1 0 ", memory: ":one]", age: "1000"},
		{what: "a longer quarantine", args: "owner=b quarantine=5000 new=two known=-", reply: "[-3 4000 ", memory: ":one]", age: "1000"},
		{what: "watched for longer", args: "owner=b quarantine=1000 new=two known=KNOWN since=3000", reply: "[0 ", memory: ":one]", age: "1000"},
		{what: "forgotten", args: "owner=c quarantine=1000 new=three known=KNOWN since=60000", reply: "[-3 1000 ", memory: ":three]", age: "0"},
		{what: "of another run", sets: "memory another:three", memory: ":looked]", age: "0"},
		{what: "inspected before", args: "owner=b quarantine=1000 new=four known=-", reply: "[-3 1000 ", memory: ":looked]", age: "0"},
		{what: "of the same run before a promotion", sets: "memory RUN:another:three age 60000", memory: ":looked]", age: "0"},
		{what: "voted before a promotion", args: "owner=b quarantine=1000 new=five known=-", reply: "[-3 1000 ", memory: ":looked]", age: "0"},
	} {
		if step.what == "forgotten" {
			d.must(t, "DEL", record, lock)
		}
		if step.sets != "" {
			run, _, _ := strings.Cut(strings.Trim(first, "["), ":")
			fields := strings.Fields(strings.Replace(step.sets, "RUN", run, 1))
			d.must(t, append([]string{"HSET", record}, fields...)...)
		} else {
			_, args := call(scripts.MajorityAcquire, lock, strings.Replace(step.args, "KNOWN", first, 1))
			reply := d.run(t, scripts.MajorityAcquire, []string{lock, record}, args)
			if !strings.HasPrefix(reply, step.reply) || !strings.HasSuffix(reply, step.memory) {
				t.Errorf("%s: reply %s, want %s…%s", step.what, reply, step.reply, step.memory)
			}
			if first == "" {
				first = strings.Trim(reply[strings.LastIndex(reply, " ")+1:], "]")
			}
		}
		if looked := d.run(t, scripts.Memory, []string{record}, []string{"looked"}); !strings.HasPrefix(looked, "["+step.age+" ") ||
			!strings.HasSuffix(looked, step.memory) {
			t.Errorf("%s: the memory is %s, want [%s …%s", step.what, looked, step.age, step.memory)
		}
	}
}
