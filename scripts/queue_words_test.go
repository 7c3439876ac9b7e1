package scripts_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// entryWords returns an entry in the notation of the scripts; reserves is the word for one that reserves the lock.
func entryWords(entry, reserves string) string {
	ttl, rest, timed := strings.Cut(entry, ":")
	if !timed {
		ttl, rest = "20000", entry
	}
	if !strings.Contains(rest, ".") { // no entry
		return ttl + " " + rest
	}
	options := strings.Split(rest, "+")
	mode, tokens, listens, end := "0", "0", "0", ""
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
			tokens = strings.TrimPrefix(option, "tokens")
		}
	}
	return strings.Join([]string{ttl, strings.ReplaceAll(options[0], ".", " "), mode, tokens, listens}, " ") + end
}

// entryText returns an entry as in states; since reads a time of it.
func entryText(words []string, since func(micros string) int) string {
	text := strings.TrimPrefix(words[0]+":", "20000:") + words[1] + "." + words[2]
	for i, option := range []string{"+reads", "+tokens" + words[4], "+listens"} {
		if words[3+i] != "0" {
			text += option
		}
	}
	switch {
	case len(words) == 6:
		return text
	case words[6] == "0":
		return text + "+reserves"
	case words[6] == "-":
		return text + "+lapsed"
	}
	return text + "+reserved" + strconv.Itoa(since(words[6]))
}

// putQueueWord writes a word of the wait queue; entry is the last entry before it.
func (d *db) putQueueWord(t *testing.T, queue, word, entry string, start time.Time) {
	t.Helper()
	at := func(seconds string) string { return strconv.Itoa(int(start.UnixMicro()) + 1e6*number(t, seconds)) }
	if seen, isSeen := strings.CutPrefix(word, "seen@"); isSeen {
		entry, arrived, _ := strings.Cut(entry, "@")
		client, rest, _ := strings.Cut(entry, "=")
		rest, since, isReserved := strings.Cut(rest, "+reserved")
		words := at(arrived) + " " + at(seen) + " " + entryWords(rest, "0")
		if isReserved {
			words += " " + at(since)
		}
		d.must(t, "HSET", queue, client[1:], words)
		return
	}
	field, value, isEntry := strings.Cut(word[1:], "=")
	until, isOpen := strings.CutPrefix(word, ">open@")
	switch {
	case isOpen:
		d.must(t, "HSET", queue, "open", at(until))
	case field == "turns":
		d.must(t, "HSET", queue, field, value)
	case !isEntry:
		d.must(t, "PEXPIRE", queue, field)
	}
}

// queueWords returns the words of a wait queue.
func queueWords(t *testing.T, fields []string, ttl string, start time.Time) string {
	t.Helper()
	since := func(micros string) string { return strconv.Itoa(number(t, micros)/1000 - int(start.UnixMilli())) }
	var entries []string // each after its time of arrival
	var open, turns string
	for i := 0; i < len(fields); i += 2 {
		field, value := fields[i], strings.Fields(fields[i+1])
		switch field {
		case "open":
			open = " >open@" + since(value[0])
		case "turns":
			turns = " >turns=" + value[0]
		default:
			entry := entryText(value[2:], func(micros string) int {
				return int(math.Floor(float64(number(t, micros)-int(start.UnixMicro())) / 1e6))
			})
			entries = append(entries, value[0]+" >"+field+"="+entry+"@"+since(value[0])+" seen@"+since(value[1]))
		}
	}
	slices.Sort(entries)
	words := ","
	for _, entry := range entries {
		_, entry, _ = strings.Cut(entry, " ")
		words += " " + entry
	}
	return words + open + turns + " >" + ttl
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
