package scripts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The tables write clients and owners as letters; Redis gets what a client writes. A letter from s on is
// a client, so "v:2" is an owner; "a", "b" and "c" are whole owners. Other letters are what they are.
const (
	letters    = "abcstuvwxyz"
	wholeOwner = "abc"
)

// isLetter finds a letter that is a word, or is before a colon.
var isLetter = regexp.MustCompile(`(^|[^0-9A-Za-z_-])([` + letters + `])($|:)`)

func longOf(letter string) string {
	long := fmt.Sprintf("%08x-0000-4000-8000-000000000000", letter[0])
	if strings.Contains(wholeOwner, letter) {
		long += ":1"
	}
	return long
}

var shortener = func() *strings.Replacer {
	var pairs []string
	for _, letter := range strings.Split(letters, "") {
		pairs = append(pairs, longOf(letter), letter)
	}
	return strings.NewReplacer(pairs...)
}()

// long is a word of a table as Redis gets it, and short what Redis says as the tables have it.
func long(word string) string {
	return isLetter.ReplaceAllStringFunc(word, func(found string) string {
		i := strings.IndexAny(found, letters)
		return found[:i] + longOf(found[i:i+1]) + found[i+1:]
	})
}

func short(text string) string { return shortener.Replace(text) }

// longWords are those of a command. A script stays as it is, and so does the value that SET sets.
func longWords(words []string) []string {
	words = slices.Clone(words)
	for i := 1; i < len(words); i++ {
		if script, value := words[0] == "SCRIPT" || words[0] == "EVAL" && i == 1, words[0] == "SET" && i > 1; !script && !value {
			words[i] = long(words[i])
		}
	}
	return words
}
