package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// line is a request to a driver, or its answer: "<id> <word> key=value …". The word of a request is its verb, the word
// of an answer is ok or err. See java/README.md.
type line struct {
	id, word string
	values   map[string]string
}

// lists are the keys whose values are lists. No element has a comma in it.
var lists = []string{"names", "kinds", "id"}

func (l line) String() string {
	text := l.id + " " + l.word
	for _, key := range slices.Sorted(maps.Keys(l.values)) {
		value := url.PathEscape(l.values[key])
		if slices.Contains(lists, key) {
			value = strings.ReplaceAll(value, "%2C", ",")
		}
		text += " " + key + "=" + value
	}
	return text
}

func parseLine(text string) (line, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return line{}, fmt.Errorf("%q is not a line of the protocol", text)
	}
	l := line{id: words[0], word: words[1], values: map[string]string{}}
	for _, word := range words[2:] {
		key, escaped, ok := strings.Cut(word, "=")
		value, err := url.PathUnescape(escaped)
		if err == nil && !ok {
			err = errors.New("it has no value")
		}
		if err != nil {
			return line{}, fmt.Errorf("%q in %q: %w", word, text, err)
		}
		l.values[key] = value
	}
	return l, nil
}

// set sets values given as "key=value", not escaped yet.
func (l line) set(values ...string) line {
	for _, pair := range values {
		key, value, _ := strings.Cut(pair, "=")
		l.values[key] = value
	}
	return l
}
