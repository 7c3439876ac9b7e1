// Package printable has the one rule by which names, and what Redis says, are shown to people.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Text returns a text as it is shown on a terminal, a page or in an error: the text itself if every
// character of it is seen, else quoted as Go does it. Control characters, line ends, characters that change the
// direction of writing or are invisible, and bytes that are no UTF-8 are escaped.
func Text(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	return Quote(text)
}

// Quote returns a text in quotes, as Text shows one that has hidden characters.
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

// hidden reports whether a character is not seen, or cannot be told from a byte that is no UTF-8.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '\u2800' ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
