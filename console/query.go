package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/lockkeeper-go/lockkeeper/internal/inspect"
)

// query is the query of a page. Viewers with the same query get the same page.
type query struct {
	// Filter is a text that the names of the listed locks contain.
	Filter string
	// Name is set for the page of one lock, which has no Filter and no Page.
	Name string
	// Kind is the kind of the lock Name.
	Kind string
	// Sort is the order of the rows: sortHold, sortName, or the longest wait.
	Sort string
	// Fleet is set for the locks of all Systems.
	Fleet bool
	// Page counts from 0.
	Page int
}

const (
	sortHold = "hold"
	sortName = "name"
)

// queryOf returns the query of a request.
func queryOf(r *http.Request) query {
	if name := r.FormValue("name"); name != "" && len(name) <= maxName {
		return query{Name: name, Kind: cmp.Or(r.FormValue("kind"), inspect.KindPlain)}
	}
	q := query{Filter: r.FormValue("q"), Fleet: r.FormValue("fleet") != ""}
	if sort := r.FormValue("sort"); sort == sortHold || sort == sortName {
		q.Sort = sort
	}
	if page, err := strconv.Atoi(r.FormValue("page")); err == nil && page > 0 && page < maxFleet {
		q.Page = page
	}
	return q
}

// encode returns the query as part of a URL.
func (q query) encode() string {
	values := url.Values{}
	if q.Name != "" {
		values.Set("name", q.Name)
		values.Set("kind", q.Kind)
		return values.Encode()
	}
	if q.Filter != "" {
		values.Set("q", q.Filter)
	}
	if q.Sort != "" {
		values.Set("sort", q.Sort)
	}
	if q.Fleet {
		values.Set("fleet", "1")
	}
	if q.Page > 0 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	return values.Encode()
}

// Turn returns the link to another page of the same table.
func (q query) Turn(by int) string {
	q.Page += by
	return "?" + q.encode()
}

// SortedBy returns the link to the same rows in another order, from the first page.
func (q query) SortedBy(sort string) string {
	q.Sort, q.Page = sort, 0
	return "?" + q.encode()
}
