package judge

import (
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// foreign is the kind of a name that may be another application's key.
const foreign = "foreign"

// foreign checks that requests for another application's key are refused without a wait, and that no text discloses
// the key's data.
func (j *judge) foreign(l *lock) {
	for _, s := range slices.Concat(l.requests, l.changes) {
		if strings.HasPrefix(s.Err, history.Discloses) {
			j.violated("a foreign key is not disclosed", l.name, s.Answered, "%v (%s) %s", s, s.part.Action, s.Err)
		}
		planted := slices.ContainsFunc(j.faults, func(f history.Fault) bool { return f.Foreign && f.Lock == l.name && f.To < s.Asked })
		if !planted || s.part.Action == history.Inspect || s.Answered == 0 {
			continue
		}
		switch took := s.Answered - s.Asked - j.hindered(history.Span{From: s.Asked, To: s.Answered}, s.Proc, l.name); {
		case s.Granted:
			j.violated("a foreign key is not locked", l.name, s.Answered,
				"%v (%s) was granted, and the key is another application's", s, s.part.Action)
		case s.Err == "timed out" || s.Err == "held" || took > 2*j.limits.Slack:
			j.violated("a foreign key is not waited for", l.name, s.Answered,
				"%v (%s) was refused (%s) after %v, and the key is another application's", s, s.part.Action, s.Err, took)
		}
	}
}
