package scripts

import (
	"regexp"
	"slices"
	"strings"
)

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	// luaCommand matches a command in capitals, and its subcommand.
	luaCommand = regexp.MustCompile(`\('([A-Z]+)'(?:, '([A-Z]+)')?`)
)

// Commands returns the commands that the script may run, sorted and in the notation of ACL rules:
// "hset", "pubsub|numsub".
func (s *Script) Commands() []string {
	var all []string
	for _, m := range luaCommand.FindAllStringSubmatch(luaComment.ReplaceAllString(s.Source, ""), -1) {
		all = append(all, strings.ToLower(strings.TrimSuffix(m[1]+"|"+m[2], "|")))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
