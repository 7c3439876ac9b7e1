package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The tables abbreviate clients and owners as letters. A letter from s on is a client, so "v:2" is an
// owner; "a", "b" and "c" are whole owners. Other letters are not replaced.
const (
	abbreviations = "abcstuvwxyz"
	wholeOwner    = "abc"
)

// isAbbreviation matches a letter that is a word, or is before a colon.
var isAbbreviation = regexp.MustCompile(`(^|[^0-9A-Za-z_-])([` + abbreviations + `])($|:)`)

func longOf(letter string) string {
	long := fmt.Sprintf("%08x-0000-4000-8000-000000000000", letter[0])
	if strings.Contains(wholeOwner, letter) {
		long += ":1"
	}
	return long
}

var shortener = func() *strings.Replacer {
	var pairs []string
	for _, letter := range strings.Split(abbreviations, "") {
		pairs = append(pairs, longOf(letter), letter)
	}
	return strings.NewReplacer(pairs...)
}()

// long expands the abbreviations in a word of a table, and short abbreviates a reply of Redis.
func long(word string) string {
	return isAbbreviation.ReplaceAllStringFunc(word, func(found string) string {
		i := strings.IndexAny(found, abbreviations)
		return found[:i] + longOf(found[i:i+1]) + found[i+1:]
	})
}

func short(text string) string { return shortener.Replace(text) }

// longWords expands the words of a command, except for scripts and the value of SET.
func longWords(words []string) []string {
	words = slices.Clone(words)
	for i := 1; i < len(words); i++ {
		if script, value := words[0] == "SCRIPT" || words[0] == "EVAL" && i == 1, words[0] == "SET" && i > 1; !script && !value {
			words[i] = long(words[i])
		}
	}
	return words
}
