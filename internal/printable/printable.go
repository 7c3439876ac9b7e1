// Package printable makes hidden characters visible in names and in texts from Redis.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Text returns a text as it is shown on a terminal, on a page or in an error: unchanged if it has no hidden
// characters, otherwise quoted like strconv.Quote. Control characters, line ends, characters that change the
// direction of writing or are invisible, and bytes that are not UTF-8 are escaped.
func Text(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	return Quote(text)
}

// Quote returns a text in quotes, with hidden characters escaped.
func Quote(text string) string {
	var b strings.Builder
	for _, r := range strconv.Quote(text) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible, or looks like a byte that is not UTF-8.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '\u2800' ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
