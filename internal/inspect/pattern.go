package inspect

import (
	"regexp"
	"strings"
)

// quotePattern quotes a text for a pattern of SCAN.
func quotePattern(text string) string {
	return regexp.MustCompile(`[*?\[\]\\^]`).ReplaceAllString(text, `\$0`)
}

// matches reports whether a text matches a pattern, as SCAN does it: byte by byte. An asterisk first matches nothing;
// where the rest then differs, the last asterisk matches a byte more.
func matches(pattern, text string) bool {
	behind, left, asterisk := "", "", false
	for pattern != "" || text != "" {
		if strings.HasPrefix(pattern, "*") {
			pattern = pattern[1:]
			behind, left, asterisk = pattern, text, true
			continue
		}
		if pattern != "" && text != "" {
			if is, rest := matchesByte(pattern, text[0]); is {
				pattern, text = rest, text[1:]
				continue
			}
		}
		if !asterisk || left == "" {
			return false
		}
		left = left[1:]
		pattern, text = behind, left
	}
	return true
}

// matchesByte reports whether a byte matches the first element of a pattern, which is not an asterisk. It returns the
// rest of the pattern, too.
func matchesByte(pattern string, b byte) (is bool, rest string) {
	switch first := pattern[0]; {
	case first == '?':
		return true, pattern[1:]
	case first == '[':
		return inClass(pattern[1:], b)
	case first == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[0] == b, pattern[1:]
}

// inClass is matchesByte for the part of a pattern behind a bracket.
func inClass(pattern string, b byte) (is bool, rest string) {
	pattern, not := strings.CutPrefix(pattern, "^")
	for pattern != "" && pattern[0] != ']' {
		from, to, size := pattern[0], pattern[0], 1
		switch {
		case from == '\\' && len(pattern) > 1:
			from, to, size = pattern[1], pattern[1], 2
		case len(pattern) > 2 && pattern[1] == '-':
			to, size = pattern[2], 3
		}
		is = is || min(from, to) <= b && b <= max(from, to)
		pattern = pattern[size:]
	}
	return is != not, strings.TrimPrefix(pattern, "]")
}

// ends reports whether a text that is appended to a pattern begins a new element: no bracket is open at the end, and
// the last byte is not a backslash that quotes.
func ends(pattern string) bool {
	const mark = "*"
	for pattern += mark; pattern != "" && pattern != mark; {
		_, pattern = matchesByte(pattern, 0)
	}
	return pattern == mark
}
