package printable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText_EscapesHiddenCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders-invoice": "orders-invoice", `a "b" \c`: `a "b" \c`, "Bücher 本": "Bücher 本", "": "",
		"a\x1b[31mb": `"a\x1b[31mb"`, "a\rb\nc": `"a\rb\nc"`, "\u202einvoice": `"\u202einvoice"`, "a\u200bb": `"a\u200bb"`,
		"a\u2028b": `"a\u2028b"`, "\xff": `"\xff"`, "a\ufe0fb": `"a\ufe0fb"`, "\u3164": `"\u3164"`, "\u2800": `"\u2800"`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

// Text has no hidden characters for any input.
func FuzzText(f *testing.F) {
	f.Add("a\u202e\xff\U000e0001")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Text(text); strings.IndexFunc(got, hidden) >= 0 && !strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("%q is shown as %q", text, got)
		}
	})
}
