package browser_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/console"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

// row is a lock as the page shows it, or as Redis has it.
type row struct {
	Name, Holder, Lease, Processes, Token string
}

const readRows = `[...document.querySelectorAll("table.locks tbody tr")].map(tr => {
	const [name, holder, since, lease, waiting, token] = [...tr.cells].map(cell => cell.innerText.trim());
	return {Name: name, Holder: holder, Lease: lease, Processes: (/(\d+) process/.exec(waiting) || ["", "0"])[1], Token: token};
})`

// fleet are processes that share a Redis, and a prefix.
type fleet struct {
	server      *redistest.Server
	prefix      string
	shop        *locktest.Site
	billing     *locktest.Site
	description map[string]string // by client
}

func start(t *testing.T, journal *console.Journal) *fleet {
	t.Helper()
	f := &fleet{server: redistest.Shared(t), prefix: redistest.Name(t) + ":", description: map[string]string{}}
	config := func(application string) lockkeeper.Config {
		return lockkeeper.Config{Application: application, KeyPrefix: f.prefix, Watchdog: time.Hour, CallTimeout: time.Minute}
	}
	f.shop, f.billing = locktest.Open(t, f.server.URL(), journal.Attach(config("shop"))), locktest.Open(t, f.server.URL(), config("billing"))
	host, _ := os.Hostname()
	f.description[f.shop.ID()] = "this process"
	f.description[f.billing.ID()] = fmt.Sprintf("billing on %s, pid %d", host, os.Getpid())
	return f
}

// rows are the locks in Redis, read without the code of the console.
func (f *fleet) rows(t *testing.T) (all []row) {
	t.Helper()
	for _, key := range f.server.Keys(t, f.prefix+"*") {
		if strings.Contains(key, "{lockkeeper_systems}") {
			continue // the records of processes
		}
		owners, err := f.server.Do(t, "HGETALL", key).AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		ttl, _ := f.server.Do(t, "PTTL", key).AsInt64()
		token, err := f.server.Do(t, "GET", "redisson_lock_token:{"+key+"}").ToString()
		kind := "fenced"
		if err != nil {
			token, kind = "–", "plain"
		}
		for owner := range owners {
			client, _, _ := strings.Cut(owner, ":")
			waiting := f.server.Subscribers(t, "redisson_lock__channel:{"+key+"}")
			all = append(all, row{strings.TrimPrefix(key, f.prefix) + " " + kind, f.description[client], fmt.Sprint(ttl), fmt.Sprint(waiting), token})
		}
	}
	return all
}

// like reports whether two rows are equal, but for the time that passes between them.
func like(page, redis row) bool {
	shown, err := time.ParseDuration(regexp.MustCompile(`\S+$`).FindString(page.Lease))
	ms, _ := time.ParseDuration(redis.Lease + "ms")
	page.Lease = redis.Lease
	return err == nil && (shown-ms).Abs() < 5*time.Second && page == redis
}

// agree waits until the page shows the locks in Redis.
func (f *fleet) agree(t *testing.T, p *page, when string, locks int) {
	t.Helper()
	var seen, said []row
	defer func() {
		if t.Failed() {
			t.Logf("%s: the page shows %+v, and Redis has %+v", when, seen, said)
		}
	}()
	redistest.Eventually(t, "the page to be like Redis "+when, func() bool {
		seen, said = is[[]row](t, p, readRows), f.rows(t)
		slices.SortFunc(seen, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
		return len(said) == locks && slices.EqualFunc(seen, said, like)
	})
}

// The page always shows the locks in Redis, without loading again.
func TestPage_FollowsRedis(t *testing.T) {
	journal := console.NewJournal()
	f := start(t, journal)
	p := open(t, console.Handler(f.shop.System, console.WithInterval(0), console.WithJournal(journal)))
	p.visit(t, "")
	p.awaits(t, "This process holds no lock and waits for none")
	is[bool](t, p, `window.loadedOnce = true`)

	is[bool](t, p, `dispatchEvent(new PointerEvent("pointerdown", { button: 2 }))`) // the end of this press belongs to the menu

	order := locktest.Acquire(t, f.shop.FencedLock("order:1"), lockkeeper.WithLease(10*time.Minute))
	f.agree(t, p, "with a lock held here", 1)
	invoices := locktest.Acquire(t, f.billing.Lock("invoices"))
	waits := locktest.AcquireSoon(locktest.Within(t), f.shop.Lock("invoices"))
	f.agree(t, p, "with a lock that is waited for", 2)
	p.awaits(t, "1 here for ")
	locktest.Release(t, invoices)
	mine := locktest.Got(t, waits).Hold
	f.agree(t, p, "after the other process released", 2)
	locktest.Release(t, order)
	f.agree(t, p, "after a release here", 1)

	f.server.Do(t, "DEL", f.prefix+"invoices")
	redistest.Eventually(t, "the loss", func() bool { // once less of the lease is left, Ensure calls Redis
		return errors.Is(mine.Ensure(locktest.Within(t), 59*time.Minute+23*time.Second), lockkeeper.ErrLost)
	})
	f.agree(t, p, "after a loss", 0)
	p.awaits(t, "invoices lease lost: ")
	p.awaits(t, "Losses\n1\n")
	if !is[bool](t, p, `window.loadedOnce === true && document.getElementById("state").textContent === "live"`) {
		t.Error("the page was loaded again, or is not live")
	}
}

// A viewer finds a lock, follows its link while the page is updated, and frees the lock, if that is allowed.
func TestPage_ForcesRelease(t *testing.T) {
	f := start(t, console.NewJournal())
	hold := locktest.Acquire(t, f.shop.Lock("order:1"))
	const offer = `document.querySelector("details.release") !== null`
	p := open(t, console.Handler(f.shop.System, console.WithInterval(0)))
	p.visit(t, "lock?name=order:1&kind=plain")
	p.awaits(t, "this process")
	if is[bool](t, p, offer) {
		t.Error("the page offers a release that is not allowed")
	}

	p = open(t, console.Handler(f.shop.System, console.WithInterval(0), console.WithForceRelease()))
	p.visit(t, "")
	p.awaits(t, "live")
	is[bool](t, p, `document.querySelector("td.name a").focus() || (window.updates = 0, new EventSource("events").onmessage = () => updates++, true)`)
	awaitUpdate := func() {
		n := is[int](t, p, `updates`)
		redistest.Eventually(t, "another update of the page", func() bool { return is[int](t, p, `updates`) > n+1 })
	}
	awaitUpdate()
	if focused := is[string](t, p, `document.activeElement.textContent`); focused != "order:1" {
		t.Errorf("the focus has moved to %q", focused)
	}
	at := is[[]float64](t, p, `(({x, y, width, height}) => [x + width / 2, y + height / 2])(document.querySelector("td.name a").getBoundingClientRect())`)
	button := func(event input.DispatchMouseEventType) chromedp.Action[chromedp.Void] {
		return chromedp.MouseEvent(event, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1))
	}
	p.do(t, "press the link", button(input.DispatchMouseEventTypeMousePressed))
	awaitUpdate()
	p.do(t, "let go of it", button(input.DispatchMouseEventTypeMouseReleased), chromedp.WaitVisible(chromedp.CSS("details.release")))
	if !hold.Valid() || len(f.rows(t)) != 1 {
		t.Error("the lock is free before the viewer has freed it")
	}
	p.do(t, "free the lock", chromedp.Click(chromedp.CSS("details.release summary")), chromedp.Click(chromedp.CSS("button.grave")))
	p.awaits(t, "was force-released with the console")
	p.awaits(t, "free")
	locktest.Await(t, "the loss", hold.Context().Done())
	f.agree(t, p, "after the release", 0)
}

// hidden are the texts that a viewer cannot read: cut off at the edge of the window, or too pale. 4.5 is the contrast
// between a text and its background that WCAG 2 requires.
const hidden = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const light = (color) => {
		canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
	};
	const found = document.documentElement.scrollWidth > innerWidth ? ["the page is " + document.documentElement.scrollWidth + " wide"] : [];
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const text = texts.currentNode.data.trim(), of = texts.currentNode.parentElement;
		if (!text || !of.checkVisibility() || of.closest("meter, option")) continue;
		const range = document.createRange();
		range.selectNodeContents(texts.currentNode);
		if (range.getBoundingClientRect().right > innerWidth || range.getBoundingClientRect().left < 0) found.push("cut off: " + text);
		let behind = of;
		while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
		const [a, b] = [light(getComputedStyle(of).color), light(behind ? getComputedStyle(behind).backgroundColor : "white")];
		if (Math.max(a, b) / Math.min(a, b) < 4.5) found.push("pale: " + text);
	}
	return found;
})()`

// All texts are readable, in the dark and the light scheme, on a telephone and on a desktop.
func TestPage_IsReadable(t *testing.T) {
	journal := console.NewJournal()
	f := start(t, journal)
	long := strings.Repeat("a_name_without_a_place_to_break", 10)
	locktest.Acquire(t, f.shop.FencedLock(long), lockkeeper.WithLease(time.Hour))
	locktest.Acquire(t, f.billing.ReadWriteLock("catalogue").Read())
	locktest.Acquire(t, f.shop.Lock("lost"))
	locktest.ForceRelease(t, f.shop.Lock("lost"), true)
	p := open(t, console.Handler(f.shop.System, console.WithInterval(0), console.WithJournal(journal), console.WithForceRelease(), console.WithFleet(f.shop.Client, f.prefix)))
	for _, path := range []string{"", "?fleet=1", "lock?kind=fenced&name=" + long, "lock?kind=plain&name=lost"} {
		for _, width := range []int64{320, 390, 1280} {
			for scheme, background := range map[string]string{"light": "rgb(246, 247, 249)", "dark": "rgb(17, 21, 28)"} {
				p.sized(t, width, scheme)
				p.visit(t, path)
				p.awaits(t, "live")
				is[bool](t, p, `document.querySelectorAll("details").forEach(d => d.open = true) || true`)
				if found := is[[]string](t, p, hidden); len(found) > 0 {
					t.Errorf("%s, %d pixels, %s: %q", path, width, scheme, found)
				}
				if got := is[string](t, p, `getComputedStyle(document.body).backgroundColor`); got != background {
					t.Errorf("%s: the background is %s", scheme, got)
				}
			}
		}
	}
}
