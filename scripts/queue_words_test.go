package scripts_test

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entryWords returns an entry as it is in Redis, without its times; reserves is the word for one that reserves the
// lock.
func entryWords(entry, reserves string) string {
	if !strings.Contains(entry, ".") { // no entry
		return "20000 " + entry
	}
	options := strings.Split(entry, "+")
	ttl, mode, tokens, listens, end := "20000", "0", "0", "0", ""
	for _, option := range options[1:] {
		switch option {
		case "reads":
			mode = "1"
		case "listens":
			listens = "1"
		case "reserves":
			end = " " + reserves
		case "lapsed":
			end = " -"
		default:
			if text, isTTL := strings.CutPrefix(option, "ttl"); isTTL {
				_, ms, _ := cutTime(text)
				ttl = strconv.Itoa(ms)
			} else {
				tokens = strings.TrimPrefix(option, "tokens")
			}
		}
	}
	return strings.Join([]string{ttl, strings.ReplaceAll(options[0], ".", " "), mode, tokens, listens}, " ") + end
}

// entryText returns an entry as in states, from the words of its value.
func entryText(t *testing.T, words []string, since func(micros string) string) string {
	text := words[3] + "." + words[4]
	for i, option := range []string{"+reads", "+tokens" + words[6], "+listens"} {
		if words[5+i] != "0" {
			text += option
		}
	}
	if words[2] != "20000" {
		text += "+ttl" + inUnits(number(t, words[2]))
	}
	times := since(words[0]) + strings.Replace(" seen"+since(words[1]), " seen@-1s", "", 1)
	switch {
	case len(words) == 8:
		return text + times
	case words[8] == "0":
		return text + "+reserves" + times
	case words[8] == "-":
		return text + "+lapsed" + times
	}
	return text + times + " reserved" + since(words[8])
}

var queueEntry = regexp.MustCompile(`(\S+)=(\S+)@(\S+)(?: seen@(\S+))?(?: reserved@(\S+))?`)

// putEntries writes the entries of a wait queue, and returns its other words.
func (d *db) putEntries(t *testing.T, queue, words string, start time.Time) (others string) {
	t.Helper()
	at := func(after string) string {
		_, ms, _ := cutTime(after)
		return strconv.Itoa(int(start.UnixMicro()) + 1000*ms)
	}
	for _, m := range queueEntry.FindAllStringSubmatch(words, -1) {
		value := at(m[3]) + " " + at(cmp.Or(m[4], "-1s")) + " " + entryWords(m[2], "0")
		if m[5] != "" {
			value += " " + at(m[5])
		}
		d.must(t, "HSET", queue, m[1], value)
	}
	return queueEntry.ReplaceAllString(words, "")
}

// entriesOf returns the words of a wait queue, with the entries in the order of their arrival.
func entriesOf(t *testing.T, fields []string, start time.Time) string {
	t.Helper()
	since := func(micros string) string {
		return "@" + inUnits(number(t, micros)/1000-int(start.UnixMilli()))
	}
	var entries []string // each after its time of arrival
	var open, turns string
	for i := 0; i < len(fields); i += 2 {
		field, value := fields[i], strings.Fields(fields[i+1])
		switch field {
		case "open":
			open = " open" + since(value[0])
		case "turns":
			turns = " turns=" + value[0]
		default:
			entries = append(entries, value[0]+" "+field+"="+entryText(t, value, since))
		}
	}
	slices.Sort(entries)
	words := ""
	for _, entry := range entries {
		words += entry[strings.Index(entry, " "):]
	}
	return words + open + turns
}

// orderWords returns the scores and members that belong to the entries of a wait queue, sorted by members.
func orderWords(t *testing.T, fields []string) (scored []string) {
	t.Helper()
	const half = 1 << 52
	add := func(score int, member string) { scored = append(scored, member+" "+strconv.Itoa(score)) }
	for i := 0; i < len(fields); i += 2 {
		words := strings.Fields(fields[i+1])
		if len(words) < 8 {
			continue // open or turns
		}
		arrived := number(t, words[0])
		add(-number(t, words[1])-1000*number(t, words[2]), "-"+fields[i])
		switch {
		case len(words) > 8 && words[8] != "-", len(words) == 8 && words[7] == "1":
			add(arrived, fields[i])
		case len(words) == 8:
			add(arrived-2*half, fields[i])
		}
	}
	slices.Sort(scored)
	return scored
}
