//go:build unix

package redistest

import (
	"strings"
	"testing"
)

func TestMatchers(t *testing.T) {
	body := "return 1"
	sha := digest(body)
	tests := []struct {
		name  string
		match func([]string) bool
		cmd   string
		want  bool
	}{
		{"command", Command("get"), "GET k", true},
		{"other command", Command("get"), "GETEX k", false},
		{"command and argument", Command("SCRIPT LOAD"), "script load x", true},
		{"other argument", Command("SCRIPT LOAD"), "SCRIPT FLUSH", false},
		{"argument missing", Command("SCRIPT LOAD"), "SCRIPT", false},
		{"script by digest", Script(sha), "EVALSHA " + strings.ToUpper(sha) + " 0", true},
		{"script by body", Script(body), "evalsha_ro " + sha + " 0", true},
		{"other script", Script(sha), "EVALSHA " + digest("x") + " 0", false},
		{"one of several", Script("x", sha), "EVALSHA " + digest("x") + " 0", true},
		{"any script", Script(), "EVALSHA x 0", true},
		{"not a script", Script(), "GET k", false},
		{"no arguments", Script(), "EVALSHA", false},
	}
	for _, test := range tests {
		if got := test.match(strings.Fields(test.cmd)); got != test.want {
			t.Errorf("%s: %q: %v", test.name, test.cmd, got)
		}
	}
	for _, match := range []func([]string) bool{Script(sha), Script(body)} {
		if !match([]string{"EVAL", body, "0"}) || match([]string{"EVAL", "return 2", "0"}) {
			t.Error("EVAL is not told by its body")
		}
	}
}
