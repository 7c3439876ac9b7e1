package machinetest

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// Player applies the events of a script to a machine.
type Player struct {
	T   *testing.T
	Now time.Duration // on the clock of the machine
	// Apply applies an event, and returns its effects. known reports whether it knows the event.
	Apply func(words []string) (effects []string, known bool)

	at string // file and line of the script
}

// Play applies an event, and compares its effects with the effects after its arrow.
func (p *Player) Play(line string) {
	p.T.Helper()
	event, want, _ := strings.Cut(line, " -> ")
	got := p.apply(event)
	want = relative.ReplaceAllStringFunc(want, func(text string) string {
		at, _ := p.Time(text)
		return at.String()
	})
	if !matches(want, got) {
		p.T.Fatalf("%s%s\nat %v the output is\n\t%s", p.at, event, p.Now, strings.ReplaceAll(got, "; ", "\n\t"))
	}
}

// relative matches a time that counts from now.
var relative = regexp.MustCompile(`\+[0-9.]+m?s\b`)

// Do applies events, whatever they bring about.
func (p *Player) Do(events ...string) {
	p.T.Helper()
	for _, event := range events {
		p.apply(event)
	}
}

func (p *Player) apply(event string) (effects string) {
	p.T.Helper()
	words := strings.Fields(event)
	if at, ok := p.Time(words[0]); ok {
		p.Now, words = at, words[1:]
	}
	all, known := p.Apply(words)
	if !known {
		p.T.Fatalf("%sunknown event: %s", p.at, event)
	}
	return strings.Join(all, "; ")
}

// Time reads a time; with a plus it counts from now.
func (p *Player) Time(text string) (time.Duration, bool) {
	at, err := time.ParseDuration(text)
	if strings.HasPrefix(text, "+") {
		at += p.Now
	}
	return at, err == nil
}

// Require fails the test unless ok is true.
func (p *Player) Require(ok bool, format string, args ...any) {
	p.T.Helper()
	if !ok {
		p.T.Fatalf(p.at+"at %v "+format, append([]any{p.Now}, args...)...)
	}
}

// matches reports whether a text matches a pattern, in which an asterisk stands for any text.
func matches(pattern, text string) bool {
	if pattern == "..." {
		return true
	}
	first, rest, any := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !any || !ok {
		return ok && text == ""
	}
	for i := range len(text) + 1 {
		if matches(rest, text[i:]) {
			return true
		}
	}
	return false
}
