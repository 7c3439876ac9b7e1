package judge

import (
	"slices"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// foreign is the kind of a name that may be another application's.
const foreign = "foreign"

// foreign checks that requests by the name of another application's key are refused, without a wait, and that no text
// tells what the key holds.
func (j *judge) foreign(l *lock) {
	for _, s := range slices.Concat(l.shares, l.changes) {
		if strings.HasPrefix(s.Err, history.Discloses) {
			j.violated("a foreign key is not disclosed", l.name, s.Answered, "%v (%s) %s", s, s.part.Does, s.Err)
		}
		planted := slices.ContainsFunc(j.faults, func(f history.Fault) bool { return f.Foreign && f.Lock == l.name && f.To < s.Asked })
		if !planted || s.part.Does == history.Look || s.Answered == 0 {
			continue
		}
		switch took := s.Answered - s.Asked - j.hindered(history.Span{From: s.Asked, To: s.Answered}, s.Proc, l.name); {
		case s.Granted:
			j.violated("a foreign key is no lock", l.name, s.Answered, "%v (%s) was granted, and the key is another application's", s, s.part.Does)
		case s.Err == "timed out" || s.Err == "held" || took > 2*j.limits.Slack:
			j.violated("a foreign key is not waited for", l.name, s.Answered, "%v (%s) was refused (%s) after %v, and the key is another application's", s, s.part.Does, s.Err, took)
		}
	}
}
