package scripts_test

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// A server grants only re-entries until its memory is old enough by the clocks of the callers; its uptime
// by its own clock does not count. An inspection of the memory and a vote return the same.
func TestMajorityAcquire_QuarantinesNewMemory(t *testing.T) {
	eachRedis(t, func(t *testing.T, d *db) {
		lock := redistest.Name(t)
		record := names(lock).Replace("RECORD")
		redistest.Eventually(t, "the server to be up for a second by its own clock", func() bool {
			return !strings.Contains(d.do(t, "INFO", "server"), "uptime_in_seconds:0")
		})
		first := ""
		for _, step := range []struct{ what, do, reply, memory, age string }{
			{"never seen", "a 1 30000 1000 one - 0", "[-3 1000 ", ":one]", "0"},
			{"watched under another name", "a 1 30000 1000 two another 5000", "[-3 1000 ", ":one]", "0"},
			{"watched for almost long enough", "a 1 30000 1000 two KNOWN 999", "[-3 1 ", ":one]", "999"},
			{"the age counts for other callers", "a 1 30000 1000 two - 0", "[-3 1 ", ":one]", "999"},
			{"watched for long enough", "a 1 30000 1000 two KNOWN 1000", "[1 0 ", ":one]", "1000"},
			{"re-entry", "a 2 30000 5000 two - 0", "[1 0 ", ":one]", "1000"},
			{"a longer quarantine", "b 1 30000 5000 two - 0", "[-3 4000 ", ":one]", "1000"},
			{"watched for longer", "b 1 30000 1000 two KNOWN 3000", "[0 ", ":one]", "1000"},
			{"forgotten", "c 1 30000 1000 three KNOWN 60000", "[-3 1000 ", ":three]", "0"},
			{"of another run", "HSET memory another:three", "", ":looked]", "0"},
			{"inspected before", "b 1 30000 1000 four - 0", "[-3 1000 ", ":looked]", "0"},
			{"of the same run before a promotion", "HSET memory RUN:another:three age 60000", "", ":looked]", "0"},
			{"voted before a promotion", "b 1 30000 1000 five - 0", "[-3 1000 ", ":looked]", "0"},
		} {
			if step.what == "forgotten" {
				d.must(t, "DEL", record, lock)
			}
			if args := strings.Fields(step.do); args[0] == "HSET" {
				run, _, _ := strings.Cut(strings.Trim(first, "["), ":")
				args = strings.Fields(strings.Replace(step.do, "RUN", run, 1))
				d.must(t, append([]string{"HSET", record}, args[1:]...)...)
			} else {
				args[5] = strings.NewReplacer("KNOWN", first, "-", "").Replace(args[5])
				reply := d.run(t, scripts.MajorityAcquire, []string{lock, record}, args)
				if !strings.HasPrefix(reply, step.reply) || !strings.HasSuffix(reply, step.memory) {
					t.Errorf("%s: reply %s, want %s…%s", step.what, reply, step.reply, step.memory)
				}
				if first == "" {
					first = strings.Trim(reply[strings.LastIndex(reply, " ")+1:], "]")
				}
			}
			if looked := d.run(t, scripts.Memory, []string{record}, []string{"looked"}); !strings.HasPrefix(looked, "["+step.age+" ") || !strings.HasSuffix(looked, step.memory) {
				t.Errorf("%s: the memory is %s, want [%s …%s", step.what, looked, step.age, step.memory)
			}
		}
	})
}
