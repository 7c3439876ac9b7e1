//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// Invisible characters, and characters that change the direction of writing, are escaped in every error, also in texts
// of Redis.
func TestErrors_HiddenCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	hidden := redistest.Name(t) + "\u2800\ufe0f\u3164" // a Go string in quotes has them as they are
	server.Do(t, "HSET", hidden, "email", "x")
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitUnavailable, []string{"inspect", hidden}},
		{exitUnavailable, []string{"release", "--force", hidden}},
		{exitUnavailable, []string{"watch", hidden}},
		{exitUnavailable, []string{"run", "-v", "-lock", hidden, "-wait", "0", "true"}},
		{0, []string{"ls", "-systems", "-prefix", hidden}},
		{exitUsage, []string{hidden}},
		{exitUsage, []string{"ls", "too", "many", hidden}},
		{exitUsage, []string{"run", "-lock", "a", "-kind", hidden, "true"}},
		{exitUsage, []string{"inspect", "-redis", "redis://" + hidden + "/x", "name"}},
	} {
		_, text := runCommand(t, server, c.code, c.args...)
		if text == "" || strings.ContainsAny(text, "\u2800\ufe0f\u3164") {
			t.Errorf("%q prints %q", c.args, text)
		}
	}
	if text := redisio.Classify(errors.New("ERR a\x1b[2J\u202eb")).Error(); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("an error is %q", text)
	}
}
