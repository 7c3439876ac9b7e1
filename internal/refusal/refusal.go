// Package refusal recognizes the errors of Redis, and of the scripts, by their words.
//
// An error may quote a key or a value, which may be any text. So only its beginning is looked at: the words of Redis
// before it quotes anything, and the code with which each refusal of a script begins.
package refusal

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SeveralKeys is the code of the error of a script with several KEYS while a cluster moves their slot and they are
// on two servers.
const SeveralKeys = "TRYAGAIN"

// ClusterHint says what to do if a server of a cluster does not name the other servers.
const ClusterHint = "the ACL user needs +cluster|slots and +cluster|shards, or the client cannot know the servers of the cluster"

// inScript matches the text that servers put before the error of a script: Redis before 7 puts the SHA and the line
// there, and "-" before the code if it has not called the command. A script puts no key or value there.
var inScript = regexp.MustCompile(`^(?:ERR )?(?:Error (?:running|compiling) script \([^()]*\): )?` +
	`(?:(?:@?user_script|<string>): ?\d+: )*-?(?:ERR )?`)

// said returns an error from the first word of Redis, or of the script, on.
func said(text string) string { return text[len(inScript.FindString(text)):] }

// phrase is the beginning of an error.
type phrase struct {
	words string
	// form matches the beginning if Redis puts the name of a command or of the user into it; words are then an example.
	form *regexp.Regexp
}

// begin returns a phrase without names.
func begin(words string) phrase { return phrase{words: words} }

// formed returns a phrase with names.
func formed(words, form string) phrase { return phrase{words, regexp.MustCompile(`^` + form)} }

// of reports whether the text begins with the phrase: whole words of it.
func (p phrase) of(text string) bool {
	if p.form != nil {
		return p.form.MatchString(text)
	}
	rest, begins := strings.CutPrefix(text, p.words)
	next, _ := utf8.DecodeRuneInString(rest)
	return begins && (rest == "" || !unicode.IsLetter(next) && !unicode.IsDigit(next))
}

func begins(text string, phrases []phrase) bool {
	return slices.ContainsFunc(phrases, func(p phrase) bool { return p.of(text) })
}

// otherServer are the errors in the middle of a script whose key is on another server; from Redis 7.4 and Valkey 8 on,
// also if only some keys of a command are on another server.
var otherServer = []phrase{
	begin("Script attempted to access a non local key"),
	begin("Lua script attempted to access a non local key"), // Redis before 7
	formed("Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot",
		`Unable to execute command '[^' ]*' in script because undeclared keys were accessed during rehashing of the slot`),
}

// midway are the errors in the middle of a script, which may have written before, when the cluster has
// just failed.
var midway = []phrase{
	formed("Script attempted to execute a write command while the cluster is down",
		`(?:Lua script|Script) attempted to execute a (?:write )?command while the cluster is down`),
	begin("Script attempted to access a slot not served"),
}

// ofKeys are the codes of the errors of Redis and of the scripts that concern the keys or arguments of a call: a call
// with other keys or arguments may succeed.
var ofKeys = []phrase{begin("WRONGTYPE"), begin("CROSSSLOT"), begin("LATE"), begin("BADVALUE")}

// AboutKeys reports whether the text of a permanent error is about the keys or arguments of a call, so that Redis is
// available.
func AboutKeys(text string) bool { return begins(said(text), ofKeys) }

// WrongType reports whether a key has another type, or belongs to another application.
func WrongType(text string) bool { return begins(said(text), ofKeys[:1]) }

// several is the error of a script with several KEYS.
var several = begin(SeveralKeys)

// Moving reports whether the keys of a script are on two servers while a slot is moved.
func Moving(text string) bool {
	text = said(text)
	return several.of(text) || begins(text, otherServer)
}

// byReplica are the codes of the errors of replicas.
var byReplica = []phrase{begin("READONLY"), begin("MASTERDOWN")}

// ByReplica reports whether the error comes from a replica. In a cluster a replica replies MOVED.
func ByReplica(text string) bool { return begins(said(text), byReplica) }

// Class says what can be done about an error of Redis; see redisio.Error.
type Class struct {
	Transient, Unsure bool
	Hint              string
}

// Classify returns the class of an error with that text.
func Classify(text string) Class {
	text = said(text)
	for _, p := range permanent {
		if p.of(text) {
			return Class{Hint: p.hint(text)}
		}
	}
	if begins(text, transient) {
		return Class{Transient: true}
	}
	unsure := begins(text, otherServer) || begins(text, midway)
	return Class{Transient: unsure, Unsure: unsure}
}

// transient are the codes of Redis errors that are transient. Redis refuses the
// script before it writes anything, so the outcome is certain.
var transient = []phrase{
	begin("LOADING"), begin("BUSY"), several, begin("CLUSTERDOWN"), begin("MASTERDOWN"), begin("READONLY"), begin("OOM"),
	begin("MISCONF"), begin("NOREPLICAS"), begin("UNBLOCKED"), begin("MOVED"), begin("ASK"),
	begin("max number of clients reached"),
	begin("WAIT cannot be used with replica instances"), // the master has just become a replica
}

// permanent lists the errors of Redis after which the same call would fail again, and says what the user can do.
var permanent = []struct {
	phrase
	hint func(text string) string
}{
	{ofKeys[0], fixedHint("the key is used for something else than this kind of lock; choose another name or key prefix, " +
		"but if an older lock library has it wait until it is free: see docs/migrating.md")},
	{begin("NOAUTH"), fixedHint("give the client a user name and password; Sentinels have their own")},
	{begin("WRONGPASS"), fixedHint("check the user name and password")},
	{begin("NOPERM"), aclHint},
	{begin("ACL failure"), aclHint},
	{begin("The user executing the script"), aclHint},
	{begin("This instance has cluster support disabled"),
		fixedHint("redis-cluster, and several addresses without master_set, are for clusters; this server is not one of a cluster")},
	// The quotes differ between Redis before 7, Valkey, and Redis from 8 on.
	{formed("unknown command 'CLUSTER', with args beginning with: 'SLOTS'",
		"unknown command ['`]CLUSTER['`],? with args beginning with: ['`](?:SLOTS|SHARDS)['`]"),
		fixedHint("if this is a Sentinel, the URL needs the option master_set=NAME")},
	{formed("unknown command 'SENTINEL', with args beginning with: 'SENTINELS'",
		"unknown command ['`]SENTINEL['`],? with args beginning with: ['`]SENTINELS['`]"),
		fixedHint("this server is not a Sentinel: remove master_set from the URL")},
	{begin("No such master with that name"), fixedHint("check master_set, the name that the Sentinels have for the master")},
	{ofKeys[1], fixedHint("in a cluster all keys of a lock must lie in one slot; check the braces in its name")},
}

func fixedHint(hint string) func(string) string { return func(string) string { return hint } }

// Phrases returns all words that are known, for tests: none of them counts in a key or a value.
func Phrases() (all []string) {
	for _, list := range [][]phrase{otherServer, midway, ofKeys, byReplica, transient} {
		for _, p := range list {
			all = append(all, p.words)
		}
	}
	for _, p := range permanent {
		all = append(all, p.words)
	}
	all = append(all, lacks.words)
	slices.Sort(all)
	return slices.Compact(all)
}
