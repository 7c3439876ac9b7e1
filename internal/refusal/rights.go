package refusal

import (
	"regexp"
	"strings"
)

// lacks is the error of a user who may not run a command. It names the command, and in some versions the user.
var lacks = formed("NOPERM this user has no permissions to run the 'get' command",
	`(?:NOPERM |ACL failure in script: )?(?:this user|User [^ ]*) has no permissions to run the '([a-z]+(?:\|[a-z-]+)?)' command`)

// LacksCommand reports whether the user may not run a command, on any key.
func LacksCommand(text string) bool { return lacks.form.MatchString(said(text)) }

// names matches the names of the user and of a key, which may be any words.
var names = regexp.MustCompile(`^(?:NOPERM |ACL failure in script: )?User [^ ]* |(?s:'.*')`)

// aclHint returns a hint that names the missing right, as far as the error of Redis does: for a command
// inside a script, older versions name only the line of the script.
func aclHint(text string) string {
	lack := "may not run a command of the script"
	words := names.ReplaceAllString(text, "")
	switch m := lacks.form.FindStringSubmatch(text); {
	case m != nil:
		lack = "lacks +" + m[1]
	case strings.Contains(words, "channel"):
		lack = "may not use that channel: a rule &… is missing"
	case strings.Contains(words, "key"):
		lack = "may not use that key: a rule ~… is missing"
	}
	return "the ACL user " + lack + "; docs/acl.md lists what each kind of lock needs, " +
		"docs/operate.md what the program lockkeeper needs, and lockkeeper doctor tries each kind"
}
