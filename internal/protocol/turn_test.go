package protocol

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

var wellFormed = regexp.MustCompile(`(?s)^([0-9]+) ([0-9]+) ([0-9]+) (.+)$`)

// Only well-formed messages are read as transfers, with the values of the message.
func FuzzParseTurn(f *testing.F) {
	for _, payload := range []string{
		"3 7 0 orders", "3 7 12 a key with spaces", "0 0 0 x", "1 1 -1 x", "007 08 00 0", "1 1 1e3 x", "1 2 3", "1 2 3 ", "3 0 0  two  words ",
		" 3 7 0 orders", "3  7 0 orders", "3 +7 0 orders", "-3 7 0 orders", "3 7 0.5 orders", "3 7 9223372036854775807 {", "3 7 9223372036854775808 x",
		"18446744073709551615 18446744073709551615 0 \n", "18446744073709551616 7 0 x", "3 18446744073709551616 0 x",
	} {
		f.Add(payload, uint64(1), uint64(2), int64(3))
	}
	f.Fuzz(func(t *testing.T, text string, term, seq uint64, token int64) {
		if key, transfer, ok := ParseTurn(text); ok {
			words := wellFormed.FindStringSubmatch(text)
			if words == nil {
				t.Fatalf("%q was read", text)
			}
			token := int64(0)
			if len(transfer.Tokens) > 0 {
				token = transfer.Tokens[0]
			}
			for i, got := range []string{fmt.Sprint(transfer.Term), fmt.Sprint(transfer.Seq), fmt.Sprint(token)} {
				if got != strings.TrimLeft(words[i+1][:len(words[i+1])-1], "0")+words[i+1][len(words[i+1])-1:] {
					t.Errorf("%q: word %d was read as %s", text, i, got)
				}
			}
			if key != words[4] || transfer.Term == 0 {
				t.Errorf("%q was read as %q, %+v", text, key, transfer)
			}
		}
		key, transfer, ok := ParseTurn(fmt.Sprintf("%d %d %d %s", term, seq, token, text))
		if good := term > 0 && token >= 0 && text != ""; ok != good {
			t.Errorf("%d %d %d %q: well-formed is %v, want %v", term, seq, token, text, ok, good)
		}
		var tokens []int64
		if token > 0 {
			tokens = []int64{token}
		}
		want := machine.Transfer{Term: term, Seq: seq, Tokens: tokens}
		if ok && (key != text || transfer.Term != want.Term || transfer.Seq != want.Seq || !slices.Equal(transfer.Tokens, want.Tokens)) {
			t.Errorf("%q, %+v was read as %q, %+v", text, want, key, transfer)
		}
	})
}
