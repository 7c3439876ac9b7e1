package scripts

import (
	"regexp"
	"slices"
	"strings"
)

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	// luaCommand is a command, or a command and its subcommand, in capitals.
	luaCommand = regexp.MustCompile(`\('([A-Z]+)'(?:, '([A-Z]+)')?`)
)

// Commands returns the commands that the script may run, sorted, as the rules of an ACL have
// them: "hset", "pubsub|numsub".
func (s *Script) Commands() []string {
	var all []string
	for _, m := range luaCommand.FindAllStringSubmatch(luaComment.ReplaceAllString(s.Source, ""), -1) {
		all = append(all, strings.ToLower(strings.TrimSuffix(m[1]+"|"+m[2], "|")))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
