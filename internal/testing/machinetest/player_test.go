package machinetest

import (
	"testing"
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
