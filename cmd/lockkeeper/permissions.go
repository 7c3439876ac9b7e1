//go:build unix

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// refusedAt matches the SHA of the script and the line at which Redis has refused a command.
var refusedAt = regexp.MustCompile(`\b(?:f_)?([0-9a-f]{40})\b.*?@?user_script:(\d+)`)

// lacking returns a hint at the rights that a user lacks whose script was refused, since Redis names only the line.
func lacking(text string) string {
	m := refusedAt.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "executing the script") && !strings.Contains(text, "ACL failure") {
		return ""
	}
	i := slices.IndexFunc(scripts.All, func(s *scripts.Script) bool { return s.SHA == m[1] })
	line, err := strconv.Atoi(m[2])
	if i < 0 || err != nil {
		return ""
	}
	script := scripts.All[i]
	advice := fmt.Sprintf("the script %s needs %s", script.Name, strings.Join(commands(script), " "))
	if lines := strings.Split(script.Source, "\n"); line >= 1 && line <= len(lines) {
		if here := commands(scripts.New("", lines[line-1], scripts.Shape{})); len(here) > 0 {
			advice = fmt.Sprintf("the user lacks %s, or the key or channel that it is for with this -prefix; %s", strings.Join(here, " or "), advice)
		}
	}
	return advice
}

// commands returns the ACL rules that allow the commands in a script.
func commands(script *scripts.Script) (rules []string) {
	for _, command := range script.Commands() {
		rules = append(rules, "+"+command)
	}
	return rules
}
