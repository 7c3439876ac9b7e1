package redistest

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
)

// Command matches commands by name, in upper or lower case.
func Command(name string) func(cmd []string) bool {
	return func(cmd []string) bool { return strings.EqualFold(cmd[0], name) }
}

// Script matches the runs of scripts, by EVALSHA and by EVAL alike. A script is
// named by its SHA-1 digest, in lower case; without a name, every script matches.
func Script(sha ...string) func(cmd []string) bool {
	return func(cmd []string) bool {
		switch strings.ToUpper(cmd[0]) {
		case "EVALSHA":
			return len(sha) == 0 || slices.Contains(sha, cmd[1])
		case "EVAL":
			return len(sha) == 0 || slices.Contains(sha, fmt.Sprintf("%x", sha1.Sum([]byte(cmd[1]))))
		}
		return false
	}
}
