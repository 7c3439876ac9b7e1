package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
)

// view is the part of a snapshot for a query.
type view struct {
	*snapshot
	query
	// One is the lock on the page of one lock.
	One *lock
	// HasFleet reports whether there is a page of all Systems.
	HasFleet   bool
	Journal    bool
	MayRelease bool
}

// form is the format in which a view is written.
type form string

const (
	wholePage  form = "page"
	livePart   form = "live"
	jsonOfData form = "json"
)

// maxErrors bounds the errors of a view.
const maxErrors = 3

// view returns the part of a snapshot for a query. The view has only the errors of the selected locks.
func (c *console) view(s *snapshot, q query) *view {
	selected := *s
	v := &view{snapshot: &selected, query: q, HasFleet: c.inspector != nil, Journal: c.journal != nil, MayRelease: c.mayRelease}
	if q.Name != "" {
		selected.Locks = s.one(lockID{q.Kind, q.Name})
	} else {
		selected.Locks, selected.MoreLocks = s.page(q)
	}
	for _, l := range selected.Locks {
		selected.addError(l.err)
	}
	if q.Name != "" && len(selected.Locks) > 0 {
		v.One = &selected.Locks[0]
	}
	selected.Systems, selected.MoreSystems = firstRows(s.Systems)
	selected.Events = eventsFor(s.Events, q.Name)
	slices.SortStableFunc(selected.Events, func(a, b Event) int { return b.At.Compare(a.At) })
	selected.Events, _ = firstRows(selected.Events)
	return v
}

// one returns the lock of that name and kind, if it was looked up or belongs to this System.
func (s *snapshot) one(id lockID) []lock {
	if l, ok := s.lookUps[id]; ok {
		return []lock{*l}
	}
	if i := slices.IndexFunc(s.Locks, func(l lock) bool { return l.id() == id }); i >= 0 {
		return s.Locks[i : i+1 : i+1]
	}
	return nil
}

// page returns one page of the locks whose names contain the filter, and how many locks follow it.
func (s *snapshot) page(q query) (rows []lock, more int) {
	rows = []lock{}
	matches, begin := 0, q.Page*maxRows
	all := s.Locks
	if by := map[string]func(a, b lock) int{sortHold: byHold, sortName: byName}[q.Sort]; by != nil {
		all = slices.Clone(all)
		slices.SortStableFunc(all, by)
	}
	for i := range all {
		if !strings.Contains(all[i].Name, q.Filter) {
			continue
		}
		if matches >= begin && len(rows) < maxRows {
			rows = append(rows, all[i])
		}
		matches++
	}
	return rows, max(matches-begin-len(rows), 0)
}

// firstRows returns the beginning of a table, and how many rows are left out.
func firstRows[T any](rows []T) ([]T, int) {
	more := max(len(rows)-maxRows, 0)
	return slices.Clip(rows[:len(rows)-more]), more
}

// write writes a view.
func write(f form, v *view) ([]byte, error) {
	var b bytes.Buffer
	if f == jsonOfData {
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err := e.Encode(v.snapshot)
		return b.Bytes(), err
	}
	err := templates.ExecuteTemplate(&b, string(f), v)
	if f == livePart {
		return event(b.Bytes()), err
	}
	return b.Bytes(), err
}

// templates escape all names and all texts from Redis.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age":   func(at time.Time) string { return age(time.Since(at)) },
	"ms":    func(ms int64) string { return age(time.Duration(ms) * time.Millisecond) },
	"secs":  func(ms int64) float64 { return float64(ms) / 1000 },
	"rate":  func(perSecond float64) string { return fmt.Sprintf("%.3g/s", perSecond) },
	"link":  func(l lock) string { return "lock?" + query{Name: l.Name, Kind: l.Kind}.encode() },
	"clock": func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") },
	"can":   func(kind string) bool { return slices.Contains(lockKinds, kind) },
	"kinds": func() []string { return slices.Concat(lockKinds, synchronizerKinds) },
	"show":  printable.Text,
	"sum":   func(a, b int) int { return a + b },
}).ParseFS(assets, "assets/page.html"))

// age formats a duration in one or two units.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// String describes the process.
func (s *system) String() string {
	p := lockkeeper.Process{
		Client: s.Client, Application: s.Application, Host: s.Host, PID: s.PID, Version: s.Version,
		Seen: time.Duration(s.Seen) * time.Millisecond, Overdue: s.Overdue,
	}
	if s.Since != nil {
		p.Since = *s.Since
	}
	return p.String()
}
