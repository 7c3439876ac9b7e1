package machinetest

import (
	"testing"
	"time"
)

func TestMatches_AsteriskStandsForAnyText(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "granted", false}, {"granted", "", false},
		{"granted 1", "granted 1", true}, {"granted 1", "granted 12", false}, {"granted", "a granted", false},
		{"a: * until 9s", "a: granted until 9s", true}, {"a: * until 9s", "a: granted until 8s", false},
		{"*", "", true}, {"*a*", "bab", true}, {"*a*", "bbb", false}, {"...", "granted", true}, {"...", "", true},
	} {
		if got := matches(test.pattern, test.text); got != test.want {
			t.Errorf("%q matches %q: %v", test.pattern, test.text, got)
		}
	}
}

func TestPlayer_TimeWithPlusCountsFromNow(t *testing.T) {
	var at []time.Duration
	p := &Player{T: t}
	p.Apply = func(words []string) (effects []string, known bool) {
		at = append(at, p.Now)
		return []string{"now " + p.Now.String()}, words[0] == "look"
	}
	p.Play("look -> now 0s")
	p.Play("10ms look -> now +0s")
	p.Play("+5ms look -> now 15ms")
	p.Do("look", "1s look")
	if len(at) != 5 || at[3] != 15*time.Millisecond || at[4] != time.Second {
		t.Errorf("the events were at %v", at)
	}
}
