package scripts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// row is one run of a script on one lock, and the same run once more: every script
// must be safe to send again after its reply was lost.
type row struct {
	name        string
	before      string // the key's state, see put
	subscribers int    // on the lock's channel
	args        string
	reply       string
	after       string
	told        bool   // that the lock is free, on its channel
	again       string // the second reply, if it differs from the first
}

// check runs the rows of one script, which takes the lock's key and, if it publishes or
// counts subscribers, its channel as the last argument.
func check(t *testing.T, s *scripts.Script, takesChannel bool, rows []row) {
	eachRedis(t, func(t *testing.T, db *db) {
		db.load(t, s)
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				name := redistest.Name(t)
				start := time.Now()
				db.put(t, name, r.before)
				db.subscribe(t, channelOf(name), r.subscribers)
				args := strings.Fields(r.args)
				if takesChannel {
					args = append(args, channelOf(name))
				}

				for i, want := range []string{r.reply, r.again} {
					again := i == 1
					if again && want == "" {
						want = r.reply
					}
					reply := settleReply(db.run(t, s, []string{name}, args), want, start)
					if reply != want && !isError(reply, want) {
						t.Errorf("reply %q, want %q (again: %v)", reply, want, again)
					}
					if state := db.state(t, name, r.after, start); state != r.after {
						t.Errorf("state %q, want %q (again: %v)", state, r.after, again)
					}
					var told []string
					if r.told && !again {
						told = []string{"0"}
					}
					if heard := db.messages(t, channelOf(name)); !slices.Equal(heard, told) {
						t.Errorf("published %q, want %q (again: %v)", heard, told, again)
					}
				}
			})
		}
	})
}

// isError reports whether a reply is the error that is wanted. Redis before 7 puts
// the code of a script's error behind other words.
func isError(reply, want string) bool {
	return strings.HasPrefix(want, "-") && strings.HasPrefix(reply, "-") && strings.Contains(reply, want[1:])
}
