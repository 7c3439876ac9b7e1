// Package refusal recognizes the errors of Redis by their words.
package refusal

import (
	"regexp"
	"slices"
	"strings"
)

// SeveralKeys is the code of the error of a script with several KEYS while a cluster moves their slot and they are
// on two servers.
const SeveralKeys = "TRYAGAIN"

// ClusterHint is what to do if a server of a cluster does not name the others.
const ClusterHint = "the ACL user needs +cluster|slots and +cluster|shards, or the client cannot know the servers of the cluster"

// otherServer are the errors in the middle of a script whose key is on another server; from Redis 7.4 and
// Valkey 8 on, also if only some keys of a command are.
var otherServer = []string{"non local key", "during rehashing of the slot"}

// midway are the errors in the middle of a script, which may have written before, when the cluster has
// just failed.
var midway = []string{"while the cluster is down", "attempted to access a slot not served"}

// ofKeys are words of the errors of Redis and of the scripts that concern the keys or arguments of a
// call: a call with others may succeed.
var ofKeys = []string{"WRONGTYPE", "CROSSSLOT", "LATE the client", "there would be ", `", but `}

// AboutKeys reports whether the text of a permanent error is about the keys or arguments of a call, so that Redis is
// available.
func AboutKeys(text string) bool { return contains(text, ofKeys) }

// Moving reports whether the keys of a script are on two servers while a slot is moved.
func Moving(text string) bool {
	return strings.Contains(text, SeveralKeys) || contains(text, otherServer)
}

func contains(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// Class is what can be done about an error of Redis; see redisio.Error.
type Class struct {
	Transient, Unsure bool
	Hint              string
}

// Classify returns the class of an error with that text.
func Classify(text string) Class {
	for _, p := range permanent {
		if strings.Contains(text, p.words) {
			return Class{Hint: p.hint(text)}
		}
	}
	for _, word := range transientWords {
		// Redis before 7 puts "-" before the code of an error inside a script.
		if strings.HasPrefix(text, word) || strings.Contains(text, ": -"+word) {
			return Class{Transient: true}
		}
	}
	unsure := contains(text, otherServer) || contains(text, midway)
	return Class{Transient: unsure, Unsure: unsure}
}

// transientWords are the codes of Redis errors that are transient. Redis refuses the
// script before it writes anything, so the outcome is certain.
var transientWords = []string{
	"LOADING", "BUSY", SeveralKeys, "CLUSTERDOWN", "MASTERDOWN", "READONLY", "OOM",
	"MISCONF", "NOREPLICAS", "UNBLOCKED", "MOVED", "ASK",
	"max number of clients reached",
	"WAIT cannot be used with replica instances", // the master has just become one
}

// permanent lists the errors of Redis after which the same call would fail again, and
// what the user can do. Redis before 7 wraps errors of a script into a longer text,
// so the words may be anywhere in it.
var permanent = []struct {
	words string
	hint  func(text string) string
}{
	{"WRONGTYPE", fixedHint("the key is used for something else than this kind of lock; choose another name or key prefix")},
	{"NOAUTH", fixedHint("give the client a user name and password; Sentinels have their own")},
	{"WRONGPASS", fixedHint("check the user name and password")},
	{"NOPERM", aclHint},
	{"ACL failure", aclHint},
	{"The user executing the script", aclHint},
	{"cluster support disabled", fixedHint("redis-cluster, and several addresses without master_set, are for clusters; this server is not one of a cluster")},
	{"beginning with: 'SLOTS'", notACluster}, {"beginning with: `SLOTS`", notACluster}, // Redis before 7
	{"beginning with: 'SHARDS'", notACluster}, // Valkey, and Redis from 8 on
	{"beginning with: 'SENTINELS'", noSentinel}, {"beginning with: `SENTINELS`", noSentinel},
	{"No such master with that name", fixedHint("check master_set, the name that the Sentinels have for the master")},
	{"CROSSSLOT", fixedHint("in a cluster all keys of a lock must lie in one slot; check the braces in its name")},
}

var (
	notACluster = fixedHint("if this is a Sentinel, the URL needs the option master_set=NAME")
	noSentinel  = fixedHint("master_set is for Sentinels, and this is none; the URL of a server goes without it")
)

func fixedHint(hint string) func(string) string { return func(string) string { return hint } }

// refusedCommand matches the command in an error of Redis that an ACL user may not run it.
var refusedCommand = regexp.MustCompile(`'([a-z]+(\|[a-z-]+)?)' command`)

// aclHint returns a hint that names the missing right, as far as the error of Redis does: for a command
// inside a script, older versions name only the line of the script.
func aclHint(text string) string {
	lacks := "may not run a command of the script"
	switch m := refusedCommand.FindStringSubmatch(text); {
	case m != nil:
		lacks = "lacks +" + m[1]
	case strings.Contains(text, "channel"):
		lacks = "may not use that channel: a rule &… is missing"
	case strings.Contains(text, "key"):
		lacks = "may not use that key: a rule ~… is missing"
	}
	return "the ACL user " + lacks + "; docs/acl.md lists what each kind of lock needs, docs/operate.md what the program lockkeeper needs, and lockkeeper doctor tries each kind"
}
