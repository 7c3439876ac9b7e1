package scripts_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A lock's key is written as its fields, sorted, and its TTL in ms, if it has one:
// "a=1 b=2 30000". No key is "", and a string in a lock's place is "'text'".

// put brings a key into a state.
func (d *db) put(t *testing.T, key, state string) {
	t.Helper()
	for word := range strings.FieldsSeq(state) {
		reply := ""
		if field, count, isField := strings.Cut(word, "="); isField {
			reply = d.do(t, "HSET", key, field, count)
		} else if strings.HasPrefix(word, "'") {
			reply = d.do(t, "SET", key, strings.Trim(word, "'"))
		} else {
			reply = d.do(t, "PEXPIRE", key, word)
		}
		if strings.HasPrefix(reply, "-") {
			t.Fatalf("%s: %s", word, reply)
		}
	}
}

// state reads a key. A TTL that is as long as the one in want, apart from the time
// since the start of the test, is given as want has it.
func (d *db) state(t *testing.T, key, want string, since time.Time) string {
	t.Helper()
	var words []string
	switch kind := d.do(t, "TYPE", key); kind {
	case "none":
		return ""
	case "string":
		words = []string{"'" + d.do(t, "GET", key) + "'"}
	case "hash":
		fields, err := d.command(t, "HGETALL", key).AsStrMap()
		if err != nil {
			t.Fatalf("HGETALL: %v", err)
		}
		for field, count := range fields {
			words = append(words, field+"="+count)
		}
		slices.Sort(words)
	default:
		t.Fatalf("the key has become a %s", kind)
	}
	if ttl := d.do(t, "PTTL", key); ttl != "-1" {
		words = append(words, settle(ttl, lastWord(want), since))
	}
	return strings.Join(words, " ")
}

// settle gives the TTL that is wanted for one that agrees with it.
func settle(ttl, want string, since time.Time) string {
	got, err := strconv.Atoi(ttl)
	most, err2 := strconv.Atoi(want)
	if err == nil && err2 == nil && got <= most && got >= most-int(time.Since(since).Milliseconds())-2 {
		return want
	}
	return ttl
}

// settleReply does the same with the TTL that is the first element of a reply.
func settleReply(reply, want string, since time.Time) string {
	ttl, rest, ok := strings.Cut(strings.TrimPrefix(reply, "["), " ")
	most, _, wanted := strings.Cut(strings.TrimPrefix(want, "["), " ")
	if !ok || !wanted {
		return reply
	}
	return fmt.Sprintf("[%s %s", settle(ttl, most, since), rest)
}

func lastWord(s string) string { return s[strings.LastIndex(s, " ")+1:] }
