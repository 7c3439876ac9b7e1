package conformance

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"
)

// flawed names, in the environment, the flaw that the lock in memory has; see TestFlawsAreFound.
const flawed = "CONFORMANCE_FLAW"

func TestMemory(t *testing.T) {
	flaw := os.Getenv(flawed)
	if flaw != "" {
		Limit = time.Second // what never comes need not be waited for so long
	}
	Run(t, &memory{flaw: flaw, locks: map[string]*state{}})
}

// A suite that cannot fail proves nothing: each flaw turns at least these cases red.
func TestFlawsAreFound(t *testing.T) {
	for flaw, finders := range map[string][]string{
		"no exclusion":              {"mutual_exclusion", "a_try", "a_hold_is_kept_beyond_its_TTL"},
		"a lease without an end":    {"a_fixed_lease_ends_and_is_told"},
		"loss is silent":            {"a_fixed_lease_ends_and_is_told", "a_client_is_closed"},
		"last come, first served":   {"granted_in_order"},
		"a waiter that left stays":  {"a_wait_that_is_over", "cancelled_while_waiting"},
		"a grant for nobody stays":  {"cancelled_when_granted"},
		"a late release frees":      {"a_late_release_does_not_free_the_next_holder's_lock", "a_second_release_does_not_free_the_next_holder's_lock"},
		"a close without a release": {"a_client_is_closed"},
		"a goroutine is left":       {"nothing_is_left_in_the_process"},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestMemory$", "-test.v")
			cmd.Env = append(os.Environ(), flawed+"="+flaw)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("the suite has found nothing")
			}
			var found []string
			for _, m := range regexp.MustCompile(`--- FAIL: TestMemory/(\S+)`).FindAllSubmatch(out, -1) {
				found = append(found, string(m[1]))
			}
			t.Logf("found by %q", found)
			for _, name := range finders {
				if !slices.Contains(found, name) {
					t.Errorf("not found by %q", name)
				}
			}
		})
	}
}
