// Package browser_test tests the console with a browser: headless Chromium, and locks on a real Redis. It is a
// separate module, so that its dependencies do not burden the others.
package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

// limit is long enough for a browser to start on a busy machine.
const limit = 2 * time.Minute

// page is a tab of a browser, on a console that is mounted at /locks/.
type page struct {
	ctx  context.Context
	base string

	mu         sync.Mutex // guards complaints
	complaints []string
}

// open starts a browser with an empty tab. At the end of the test the browser must have reported no exception of a
// script, and no violation of the Content-Security-Policy.
func open(t *testing.T, console http.Handler) *page {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", console))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	p := &page{ctx: ctx, base: server.URL + "/locks/"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page shows: %s", is[string](t, p, `document.body.innerText`))
		}
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("the browser does not end: %v", err)
		}
		stop()
		if len(p.complaints) > 0 {
			t.Errorf("the browser reports %q", p.complaints)
		}
	})
	if err := chromedp.Listen(ctx, p.record); err != nil {
		t.Fatalf("chromium does not start (build/need.sh chromium installs it): %v", err)
	}
	return p
}

// record keeps a complaint of the browser.
func (p *page) record(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	}
}

// do runs the steps of a viewer.
func (p *page) do(t *testing.T, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (p *page) visit(t *testing.T, path string) {
	t.Helper()
	p.do(t, "visit "+path, chromedp.Navigate(p.base+path))
}

// is returns the value of an expression of JavaScript on the page.
func is[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// awaits waits until the page shows a text. Meanwhile the tab may navigate to another page.
func (p *page) awaits(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	redistest.Eventually(t, "on the page: "+text, func() bool {
		seen, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
		return err == nil && strings.Contains(seen, text)
	})
}

// sized sets the width of the window, and its colour scheme.
func (p *page) sized(t *testing.T, width int64, scheme string) {
	t.Helper()
	p.do(t, "resize", chromedp.EmulateViewport(width, 800), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return chromedp.Void{}, err
	})
}
