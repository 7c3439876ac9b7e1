package main

import (
	"regexp"
	"strconv"
	"strings"
)

// luaRules are the mutations of a line of Lua: become replaces the first group of find. Not all mutants compile.
var luaRules = []struct {
	kind   string
	find   *regexp.Regexp
	become func(old string) string
}{
	{"negate", regexp.MustCompile(`^\s*(?:if|elseif) (.+) then`), func(old string) string { return "not (" + old + ")" }},
	{"swap", regexp.MustCompile(`\s(and|or|[<>]=?|[=~]=|[-+])(?:\s|$)`), luaSwap},
	{"constant", regexp.MustCompile(`(\btrue\b|\bfalse\b|'0'|'1')`), luaSwap},
	{"constant", regexp.MustCompile(`[^\w'\[.](\d+)\b`), func(old string) string {
		n, _ := strconv.Atoi(old)
		return strconv.Itoa(n + 1)
	}},
	{"ttl", regexp.MustCompile(`(?:'PEXPIRE', [^,]+|'PX'), (.+)\)`), func(old string) string { return "2 * (" + old + ")" }},
	{"delete", regexp.MustCompile(`^\s*(return .+|redis\.call\(.+|[\w.\[\]# +]+ = .+)$`), func(string) string { return "" }},
}

// luaSwap exchanges a word for its opposite.
func luaSwap(old string) string {
	for _, pair := range [][2]string{
		{"and", "or"}, {"<", "<="}, {">", ">="}, {"==", "~="}, {"+", "-"}, {"true", "false"}, {"'0'", "'1'"},
	} {
		switch old {
		case pair[0]:
			return pair[1]
		case pair[1]:
			return pair[0]
		}
	}
	return old
}

var luaComment = regexp.MustCompile(`\s*--.*`)

// luaSites finds the sites of mutations in a Lua file, line by line.
func luaSites(src string) (found []site, err error) {
	at := 0
	for line := range strings.Lines(src) {
		code := luaComment.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
		for _, rule := range luaRules {
			if rule.kind == "delete" && strings.HasPrefix(strings.TrimSpace(code), "local ") {
				continue // later lines need the name
			}
			for _, m := range rule.find.FindAllStringSubmatchIndex(code, -1) {
				found = append(found, in(src, rule.kind, at+m[2], at+m[3], rule.become(code[m[2]:m[3]])))
			}
		}
		at += len(line)
	}
	return found, nil
}
