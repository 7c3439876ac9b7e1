//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockkeeper-go/lockkeeper"
)

// progressEvery is the interval at which the line on the terminal is updated.
const progressEvery = time.Second

// isTerminal reports whether a stream is a terminal; only a terminal has a window size.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// showProgress shows a line on a terminal during the wait for a lock: which process holds the lock, and for how long at
// least. end erases the line.
func (r *runner) showProgress(lock *lockkeeper.Lock) (end func()) {
	if !isTerminal(r.stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p := progress{began: time.Now()}
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				if p.shown {
					fmt.Fprint(r.messages, "\r\x1b[K")
				}
				return
			}
			if status, err := lock.Inspect(ctx); err == nil {
				p.shown = true
				fmt.Fprintf(r.messages, "\r\x1b[K%s", p.line(shown(r.name), status, time.Now(), width(r.stderr)))
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// withHolder adds the process that holds the lock, if it is known, to the error of a wait, as ls shows it.
func withHolder(lock *lockkeeper.Lock, err error) error {
	var refused *lockkeeper.Error
	if !errors.Is(err, lockkeeper.ErrHeld) && !errors.Is(err, lockkeeper.ErrTimeout) || !errors.As(err, &refused) {
		return err
	}
	status, problem := lock.Inspect(context.Background())
	if problem != nil || !status.Process.Known() {
		return err
	}
	named := *refused
	named.Detail = "the holder is " + status.Process.String() + noted(status.Note)
	return &named
}

// width returns the width of a terminal in columns.
func width(terminal any) int {
	if size, err := unix.IoctlGetWinsize(int(terminal.(*os.File).Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

// progress is the state of showProgress.
type progress struct {
	began time.Time
	// holder is the last known owner, which was first seen at since.
	holder string
	since  time.Time
	shown  bool
}

// line returns the text to show, in at most columns columns.
func (p *progress) line(name string, status lockkeeper.Status, now time.Time, columns int) string {
	if status.Holder != p.holder {
		p.holder, p.since = status.Holder, now
	}
	text := fmt.Sprintf("waiting for %s for %v: ", name, now.Sub(p.began).Round(time.Second))
	if status.Locked {
		left := status.TTL.Milliseconds()
		if status.TTL < 0 {
			left = -1
		}
		held := max(now.Sub(p.since), status.HeldAtLeast).Round(time.Second)
		text += fmt.Sprintf("held for at least %v by %v; ttl %s", held, status.Process, ttl(left))
	} else {
		text += "free, and others are before us"
	}
	if runes := []rune(text); len(runes) >= columns {
		text = string(runes[:max(columns-2, 0)]) + "…"
	}
	return text
}
