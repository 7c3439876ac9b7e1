package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// limits of the histories below, whose times are in milliseconds.
var limits = Limits{
	Lease: 100 * time.Millisecond, Silence: 50 * time.Millisecond, Slack: 20 * time.Millisecond,
	Idle: 200 * time.Millisecond, Order: 40 * time.Millisecond, Checker: 10 * time.Second,
}

// The checks that are to fail in a history of testdata do, and no other.
func TestJudge_NoticesEachBrokenPromise(t *testing.T) {
	awake := limits
	awake.GrantWithin, awake.Idle = 100*time.Millisecond, time.Minute
	for file, limits := range map[string]Limits{"locks": limits, "synchronizers": limits, "worlds": awake, "turns": turnLimits()} {
		text, err := os.ReadFile(filepath.Join("testdata", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range strings.Split(string(text), "# ")[1:] {
			name, lines, _ := strings.Cut(each, "\n")
			t.Run(file+"/"+name, func(t *testing.T) {
				s := parse(t, lines)
				v := s.judged(limits)
				var got []string
				for _, violation := range v.Violations {
					got = append(got, violation.Check)
				}
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, s.broken) {
					t.Errorf("failed: %q, want %q\n%v", got, s.broken, v.Violations)
				}
				if len(v.Undecided) > 0 {
					t.Errorf("undecided: %q", v.Undecided)
				}
			})
		}
	}
}

func TestJudge_NoticesAStuckOrCrashedProcess(t *testing.T) {
	for check, v := range map[string]*Verdict{
		"every request is answered": Judge(history.Span{}, nil, nil, []int{3}, nil, nil, nil, limits),
		"no process crashes":        Judge(history.Span{}, nil, nil, nil, []int{3}, nil, nil, limits),
	} {
		if v.OK() || v.Violations[0].Check != check || !strings.Contains(v.Violations[0].Detail, "process 3") {
			t.Errorf("%s: the verdict is %v", check, v.Violations)
		}
	}
}

func TestViolation_DrawsOnlyWhatIsNotLinearizable(t *testing.T) {
	v := parse(t, "1: asked 10, granted 20, released 30\n2: asked 12, granted 25, released 40").judged(limits)
	drawn := 0
	for i := range v.Violations {
		if err := v.Violations[i].Draw(filepath.Join(t.TempDir(), "picture.html")); err != nil {
			t.Error(err)
		}
		if v.Violations[i].Picture != "" {
			drawn++
		}
	}
	if drawn != 1 {
		t.Errorf("%d pictures, want that of the history that is not linearizable", drawn)
	}
}

// A request that was interrupted by a kill has an unknown outcome: it may have happened, or not.
func TestJudge_AcceptsEitherOutcomeOfAnInterruptedRequest(t *testing.T) {
	for _, others := range []string{"", "\n2: asked 2, granted 3, released 4\n2: asked 5, granted 6, released 7"} {
		v := parse(t, "1: asked 1\nprocess 1: killed 10"+others).judged(limits)
		if !v.OK() || v.Unknown != 1 {
			t.Errorf("%d unknown outcomes, and %v", v.Unknown, v.Violations)
		}
	}
}
