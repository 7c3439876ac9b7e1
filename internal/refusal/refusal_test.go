package refusal_test

import (
	"strings"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
)

// quoting are errors of Redis and of the scripts that quote a key, a value or the name of a user, at NAME.
var quoting = []string{
	`BADVALUE NAME is "007", but the number of permits is an integer up to 2147483647; delete the key, and set the number again`,
	`BADVALUE NAME is "007", but a counter of fencing tokens goes from 0 to 9007199254740991`,
	`WRONGTYPE NAME is not a number, but the number of permits is an integer up to 2147483647`,
	`NOPERM User NAME has no permissions to run the 'hset' command`,
	`ACL failure in script: User NAME has no permissions to run the 'hset' command`,
	`NOPERM No permissions to access the 'NAME' key`,
	"unknown command `NAME`, with args beginning with: `NAME`, `NAME`, ",
	`unknown command 'EVALSHA', with args beginning with: 'NAME' 'NAME' `,
	`OOM command not allowed, says NAME`,
	`an error that is not known, about NAME`,
	`BUSY NAME`,
}

// wrapped are what servers put before and behind the error of a script, at ERROR.
var wrapped = []string{
	"ERROR", "ERR ERROR", "ERROR script: 71de, on @user_script:15.",
	"ERR Error running script (call to f_71de): @user_script:17: ERROR", "Error running script (call to f_71de): @user_script:17: @user_script: 17: -ERROR",
	"Error running script (call to f_71de): @user_script:17: ERR ERROR", "Error compiling script (new function): <string>:12: ERROR",
}

type class struct {
	refusal.Class
	aboutKeys, wrongType, moving, byReplica, lacks bool
}

func classOf(text string) class {
	return class{
		refusal.Classify(text), refusal.AboutKeys(text), refusal.WrongType(text), refusal.Moving(text), refusal.ByReplica(text), refusal.LacksCommand(text),
	}
}

func quote(wrap, text, name string) string {
	return strings.ReplaceAll(strings.Replace(wrap, "ERROR", text, 1), "NAME", name)
}

// The class of an error is the same, whatever key or value it quotes: any of the words that are known, alone, in other
// words, or as servers wrap it.
func TestQuotedWords_DoNotCount(t *testing.T) {
	t.Parallel()
	for _, text := range quoting {
		for _, wrap := range wrapped {
			want := classOf(quote(wrap, text, "orders"))
			for _, words := range append(refusal.Phrases(), "channel", "key") {
				for _, around := range []string{"ERROR", wrapped[3], wrapped[4], "a: -ERROR b", "a\r\n-ERROR", "orders'\" ERROR, but ERROR"} {
					name := strings.ReplaceAll(around, "ERROR", words)
					if strings.Contains(text, "User NAME") {
						name = strings.ReplaceAll(name, " ", "_") // it has none
					}
					if got := classOf(quote(wrap, text, name)); got != want {
						t.Errorf("%q: %+v; with an ordinary name it is %+v", quote(wrap, text, name), got, want)
					}
				}
			}
		}
	}
}

// Every phrase is recognized where Redis writes it, in each version.
func TestPhrases_AreRecognized(t *testing.T) {
	t.Parallel()
	for _, words := range refusal.Phrases() {
		for _, wrap := range wrapped {
			if got := classOf(quote(wrap, words, "")); got == (class{}) {
				t.Errorf("%q is not recognized", quote(wrap, words, ""))
			}
		}
	}
}

func FuzzQuotedWords(f *testing.F) {
	for _, words := range refusal.Phrases() {
		f.Add(words, 0, 0)
	}
	f.Fuzz(func(t *testing.T, name string, text, wrap int) {
		form, wrapping := quoting[uint(text)%uint(len(quoting))], wrapped[uint(wrap)%uint(len(wrapped))]
		if strings.Contains(form, "User NAME") && strings.ContainsAny(name, " \t\n\v\f\r\x00") {
			return // Redis allows no such user, so no error names one
		}
		if got, want := classOf(quote(wrapping, form, name)), classOf(quote(wrapping, form, "orders")); got != want {
			t.Errorf("%q: %+v; with an ordinary name it is %+v", quote(wrapping, form, name), got, want)
		}
	})
}
