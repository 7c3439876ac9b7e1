package console

import (
	"regexp"
	"strings"
	"testing"
)

// eventsOf reads a stream by the rules of the HTML standard, section "Interpreting an event stream", and
// returns the data of its events, and the other fields.
func eventsOf(stream string) (events, others []string) {
	var data strings.Builder
	for _, line := range regexp.MustCompile("\r\n|\r|\n").Split(stream, -1) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data.Len() > 0 {
				events = append(events, strings.TrimSuffix(data.String(), "\n"))
			}
			data.Reset()
		case field == "data":
			data.WriteString(value + "\n")
		default:
			others = append(others, line)
		}
	}
	return events, others
}

// A text is one event, and is read unchanged except for its line ends.
func FuzzEvent(f *testing.F) {
	for _, text := range []string{"x", "a\nb", "a\rb", "a\r\nb", "a\r\rb", "a\n\rb", "\r", "a\n\ndata: b", "\u2028\x85\x00", " :", "a\rretry: 9\r\rdata: c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		events, others := eventsOf(string(event([]byte(text))))
		if len(events) != 1 || events[0] != want || len(others) != 1 || others[0] != "retry: 1000" {
			t.Errorf("%q is read as %q, and %q", text, events, others)
		}
	})
}
