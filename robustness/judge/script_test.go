package judge

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper/robustness/history"
)

// script is a history of testdata, of a lock x: what has happened, and the checks that must fail.
type script struct {
	processes []*history.Process
	faults    []history.Fault
	found     map[string]Permits
	broken    []string
}

// parse reads a script. It has a line for each request, for each fault, and for what else happened to a process. Times are
// in milliseconds, and the lock is a plain one unless its kind follows the number of the process:
//
//	1,2 fenced: asked 10, granted 20, released 30, token 7
//	2 readwrite shared: asked 10, granted 21, invalid 50, notified 51
//	process 2: stalled 40-45
//	fault DEL 49-50: breaks leases
//	broken: tokens grow
func parse(t *testing.T, text string) *script {
	t.Helper()
	s := &script{}
	line := regexp.MustCompile(`^(broken|found|process|fault|\d[\d,]*) ?([^:]*): ?(.*)$`)
	for each := range strings.Lines(strings.TrimSpace(text)) {
		m := line.FindStringSubmatch(strings.TrimSpace(each))
		if m == nil {
			t.Fatalf("not a line of a history: %q", each)
		}
		fields := strings.Split(m[3], ", ")
		switch m[1] {
		case "broken":
			s.broken = append(s.broken, m[3])
		case "found":
			free, taken := strings.TrimSuffix(fields[0], " free"), "0"
			if len(fields) > 1 {
				taken = strings.TrimSuffix(fields[1], " taken")
			}
			s.found = map[string]Permits{"x": {Free: number(free), Taken: number(taken)}}
		case "process":
			p := s.process(number(m[2]))
			for _, field := range fields {
				if what, at, _ := strings.Cut(field, " "); what == "killed" {
					p.Killed = ms(at)
				} else {
					p.Stalls = append(p.Stalls, span(at))
				}
			}
		case "fault":
			s.fault(t, m[2], fields)
		default:
			for proc := range strings.SplitSeq(m[1], ",") {
				s.request(t, number(proc), m[2], fields)
			}
		}
	}
	for _, p := range s.processes {
		for _, r := range p.Requests {
			if p.Killed != 0 && r.Granted && r.Ended() == 0 {
				r.Died = p.Killed
			}
		}
	}
	return s
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil && text != "" {
		panic(err)
	}
	return n
}

func ms(text string) time.Duration { return time.Duration(number(text)) * time.Millisecond }

func span(text string) history.Span {
	from, to, _ := strings.Cut(text, "-")
	return history.Span{From: ms(from), To: ms(to)}
}

func (s *script) process(n int) *history.Process {
	i := slices.IndexFunc(s.processes, func(p *history.Process) bool { return p.Proc == n })
	if i < 0 {
		s.processes = append(s.processes, &history.Process{Proc: n})
		i = len(s.processes) - 1
	}
	return s.processes[i]
}

// fault adds a fault of all processes, such as "DEL 49-50", with its effects.
func (s *script) fault(t *testing.T, what string, effects []string) {
	t.Helper()
	i := strings.LastIndex(what, " ")
	when := span(what[i+1:])
	f := history.Fault{Name: what[:i], Proc: -1, From: when.From, To: when.To}
	has := map[string]*bool{
		"hinders": &f.Hinders, "breaks leases": &f.BreaksLeases, "erases data": &f.ErasesData, "clock jumps": &f.ClockJumps,
		"forces a release": &f.Forces, "foreign key": &f.Foreign, "takeover": &f.Takeover,
	}
	for _, effect := range effects {
		switch word, rest, _ := strings.Cut(effect, " "); {
		case has[effect] != nil:
			*has[effect] = true
		case word == "number":
			f.Number = int64(number(rest))
		case word == "process":
			f.Proc = number(rest)
		case word == "lock":
			f.Lock = rest
		case word != "":
			t.Fatalf("a fault has no effect %q", effect)
		}
	}
	if f.Forces || f.Foreign || f.Number != 0 {
		f.Lock = "x"
	}
	s.faults = append(s.faults, f)
}

// request adds a request of a process for a kind of lock. Later fields change what earlier ones have set.
func (s *script) request(t *testing.T, proc int, kind string, fields []string) {
	t.Helper()
	p := s.process(proc)
	kind, shared := strings.CutSuffix(kind, " shared")
	if kind == "" {
		kind = "plain"
	}
	id := len(p.Requests) + 1
	r := &history.Request{Proc: proc, ID: id, Root: id, Parts: []history.Part{{Lock: "x", Kind: kind, Shared: shared, Total: 2}}, Unlimited: true}
	p.Requests = append(p.Requests, r)
	part, times, every := &r.Parts[0], 0, time.Duration(0)
	for _, field := range fields {
		words := append(strings.Fields(field), "", "", "", "", "")
		what, first, rest := words[0], words[1], strings.TrimSpace(strings.Join(words[2:], " "))
		switch what {
		case "asked":
			r.Asked = ms(first)
		case "granted":
			r.Granted, r.Count, r.Answered, r.First = true, 1, ms(first), ms(first)
		case "refused":
			r.Answered, r.Err = ms(first), rest
		case "valid": // seen so at last
			r.Last = ms(first)
		case "unseen": // whether it was valid
			r.Last = 0
		case "invalid":
			r.Invalid, r.Last = ms(first), ms(first)-time.Millisecond
		case "notified":
			r.Notified, r.Releasing, r.Released, r.ReleaseErr, r.LossReason = ms(first), ms(first), ms(first), "lost", cmp.Or(rest, "expired")
		case "releasing":
			r.Releasing, r.Last = ms(first), ms(first)
		case "released":
			r.Released, r.Releasing, r.Last, r.ReleaseErr = ms(first), ms(first)-time.Millisecond, ms(first)-time.Millisecond, rest
			r.OutcomeUnknown = rest == "unavailable"
		case "extended": // 10-12 by 50
			r.Extensions = append(r.Extensions, history.Extension{Span: span(first), Lease: ms(words[3]), Err: words[4]})
		case "repeated": // 2 every 20
			times, every = number(first), ms(words[3])
		case "limited": // its wait is
			r.Unlimited = false
		case "with": // another lock
			r.Parts = append(r.Parts, history.Part{Lock: first, Kind: kind})
		case "token":
			r.Tokens = []int64{int64(number(first))}
		case "reenters":
			r.Root = number(first)
		case "count":
			r.Count = number(first)
		case "minimum":
			r.AtLeast = ms(first)
		case "bound":
			r.Bound = ms(first)
		case "counted": // 2 at 3
			p.Counts = append(p.Counts, history.Count{Request: r, At: ms(words[3]), Got: number(first), Want: r.Count})
		case "ensured":
			p.Ensured = append(p.Ensured, history.Ensured{Request: r, Span: span(first)})
		case "called": // 3-50 within 10
			p.Calls = append(p.Calls, history.Call{Name: "inspect", Request: r, Span: span(first), Bound: ms(words[3])})
		case "takes":
			part.Permits = number(first)
		case history.Add, history.Resize, history.Close, history.Down, history.Inspect: // 1 id 7
			part.Action, part.Permits, part.CountDownID = what, number(first), number(words[3])
		default:
			t.Fatalf("a request has no field %q", field)
		}
	}
	if r.Last == 0 {
		r.First = 0
	}
	for i := range times {
		later := time.Duration(i+1) * every
		next := *r
		if next.ID += i + 1; r.Outer() {
			next.Root = next.ID
		}
		for _, at := range []*time.Duration{&next.Asked, &next.Answered, &next.First, &next.Last, &next.Releasing, &next.Released} {
			*at += later
		}
		p.Requests = append(p.Requests, &next)
	}
}

// judged returns the verdict on the script.
func (s *script) judged(l Limits) *Verdict {
	return Judge(history.Span{To: time.Second}, s.processes, s.faults, nil, nil, nil, s.found, l)
}
