package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// Another site can make its own name resolve to this server (DNS rebinding). So every request for a host that the
// console was not given is refused.
func TestHosts_AreChecked(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	locktest.Acquire(t, s.Lock(k.LockName))
	byDefault := console.Handler(s.System, quick, console.WithForceRelease())
	named := console.Handler(s.System, quick, console.WithForceRelease(), console.WithHosts("Shop.example"))
	for host, allowed := range map[string][2]bool{
		"localhost": {true, true}, "LOCALHOST:8080": {true, true}, "shop.localhost": {true, true}, "127.0.0.1:80": {true, true}, "10.1.2.3": {true, true},
		"[::1]:8080": {true, true}, "[fe80::1]": {true, true}, "shop.example:443": {false, true}, "SHOP.EXAMPLE.": {false, true}, "a.shop.example": {},
		"evil.example": {}, "localhost.evil.example": {}, "127.0.0.1.evil.example": {}, "evil-localhost": {}, "": {},
	} {
		for i, h := range []http.Handler{byDefault, named} {
			for _, path := range []string{"/", "/data.json", "/style.css", "/release"} {
				method := http.MethodGet
				if path == "/release" {
					method = http.MethodPost
				}
				r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
				r.Host = host
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if refused := w.Code == http.StatusMisdirectedRequest; refused == allowed[i] {
					t.Errorf("%s of host %q, console %d: %d %s", path, host, i, w.Code, w.Body)
				}
			}
		}
	}
}

// Invisible characters, and characters that change the direction of writing, are escaped on every page.
func TestHiddenCharacters_AreEscaped(t *testing.T) {
	t.Parallel()
	const name = "\u202eeciovni\u200b\x1b[31m"
	s, _ := locktest.NewOnOwnServer(t, patient(name))
	locktest.Acquire(t, s.Lock(name))
	base := web(t, console.Handler(s.System, quick, console.WithForceRelease()))
	for _, page := range []string{"", "lock?name=" + url.QueryEscape(name), "events"} {
		text := ""
		if page == "events" {
			text = stream(t, base+page).next(t)
		} else {
			text = regexp.MustCompile(`value="[^"]*"`).ReplaceAllString(get(t, base+page), "")
		}
		if strings.ContainsAny(text, "\u202e\u200b\x1b") || !strings.Contains(text, `\u202eeciovni\u200b\x1b[31m`) {
			t.Errorf("%s has hidden characters, or not the escaped ones: %q", page, text)
		}
	}
}

// Redis does not know how many requests wait in the process of another holder. The page shows the number from the
// record, with its age, or "unknown".
func TestWaiters_ElsewhereAreUnknown(t *testing.T) {
	t.Parallel()
	s, k := locktest.NewOnOwnServer(t, patient(""))
	base := web(t, console.Handler(s.System, quick))
	for application, want := range map[string]string{"": "an unknown number in the holder’s process", "other": "2 in the holder’s process, "} {
		t.Run(application, func(t *testing.T) {
			other, name := locktest.Open(t, k.Server.URL(), patient(application)), redistest.Name(t)
			locktest.Acquire(t, other.Lock(name))
			wait, giveUp := context.WithCancel(t.Context())
			waiting := []<-chan locktest.Grant{locktest.AcquireSoon(wait, other.Lock(name)), locktest.AcquireSoon(wait, other.Lock(name))}
			locktest.AwaitWaiters(t, other.Lock(name), len(waiting))
			locktest.Acquire(t, other.Lock(name+" long"), lockkeeper.WithLease(10*time.Hour)) // so that the record is written
			var page string
			redistest.Eventually(t, want, func() bool {
				page = get(t, base+"lock?name="+url.QueryEscape(name))
				return strings.Contains(page, want)
			})
			if strings.Contains(page, "no waiters") {
				t.Errorf("the page hides waiters: %s", page)
			}
			giveUp()
			for _, w := range waiting {
				<-w
			}
		})
	}
	if page := get(t, base+"lock?name=free"); !strings.Contains(page, "no waiters") {
		t.Errorf("the page of a free lock shows waiters: %s", page)
	}
}
