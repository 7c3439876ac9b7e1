package scripts

import (
	"regexp"
	"slices"
	"strings"
)

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	// luaCommand matches a command in capitals, and its subcommand. Two of them are constants, which have the names of
	// their values without sharded pub/sub.
	luaCommand = regexp.MustCompile(`\((PUBLISH|'[A-Z]+')(?:, (NUMSUB|'[A-Z]+'))?`)
)

// Commands returns the commands that the script may run, sorted and in the notation of ACL rules:
// "hset", "pubsub|numsub".
func (s *Script) Commands() []string {
	var all []string
	for _, m := range luaCommand.FindAllStringSubmatch(luaComment.ReplaceAllString(s.Source, ""), -1) {
		command := strings.ReplaceAll(m[1]+"|"+m[2], "'", "")
		all = append(all, strings.ToLower(strings.TrimSuffix(command, "|")))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
