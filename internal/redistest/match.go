//go:build unix

package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
)

// Command matches commands by name, whatever the case. Further words match the
// arguments that follow: Command("SCRIPT LOAD").
func Command(name string) func(cmd []string) bool {
	words := strings.Fields(name)
	return func(cmd []string) bool {
		return len(cmd) >= len(words) && slices.EqualFunc(words, cmd[:len(words)], strings.EqualFold)
	}
}

// Script matches the runs of scripts, by EVALSHA and by EVAL alike. A script is
// named by its SHA-1 digest (40 hex digits) or by its body; without a name, every
// script matches.
func Script(sha ...string) func(cmd []string) bool {
	var digests []string
	for _, s := range sha {
		if !isDigest(s) {
			s = digest(s)
		}
		digests = append(digests, strings.ToLower(s))
	}
	return func(cmd []string) bool {
		if len(cmd) < 2 {
			return false
		}
		var run string
		switch strings.ToUpper(cmd[0]) {
		case "EVALSHA", "EVALSHA_RO":
			run = strings.ToLower(cmd[1])
		case "EVAL", "EVAL_RO":
			run = digest(cmd[1])
		default:
			return false
		}
		return len(digests) == 0 || slices.Contains(digests, run)
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha1.Size
}

func digest(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}
