package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// clock is a server's wall clock, controlled by libfaketime: it may run at another speed, and
// be set.
type clock struct {
	// rate is its speed relative to real time; 0 is the real clock.
	rate float64
	// ahead is its lead at the start, plus what it was set forward since.
	ahead time.Duration
	began time.Time
	file  string
}

// lead is how far it is ahead of real time.
func (c *clock) lead() time.Duration {
	return c.ahead + time.Duration(float64(time.Since(c.began))*(c.rate-1))
}

// like is a clock that starts at the time of another, for a replica.
func (c *clock) like() clock {
	if c.rate == 0 {
		return clock{}
	}
	return clock{rate: c.rate, ahead: c.lead()}
}

// into writes the clock's file into a server's directory, and returns the server's environment.
func (c *clock) into(dir string) ([]string, error) {
	if c.rate == 0 {
		return nil, nil
	}
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err == nil && len(library) == 0 {
		err = errors.New("the suite needs libfaketime, which is in the package faketime of Debian and Ubuntu")
	}
	if err != nil {
		return nil, err
	}
	c.began, c.file = time.Now(), filepath.Join(dir, "clock")
	if err := c.write(); err != nil {
		return nil, err
	}
	return append(os.Environ(),
		// libc's malloc replaces jemalloc, which reads the time when it starts, before the
		// library is ready.
		"LD_PRELOAD="+library[0]+":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE="+c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
	), nil
}

// forward sets the clock forward.
func (c *clock) forward(d time.Duration) error {
	if c.rate == 0 {
		return errors.New("the server's clock cannot be set")
	}
	c.ahead += d
	return c.write()
}

// remove removes the library's files of a server that was killed.
func (c *clock) remove(pid int) {
	if c.rate != 0 {
		for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
			_ = os.Remove(fmt.Sprintf("/dev/shm/%s%d", name, pid))
		}
	}
}

func (c *clock) write() error {
	text := fmt.Sprintf("%+.3f x%.4f\n", c.ahead.Seconds(), c.rate)
	if err := os.WriteFile(c.file+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(c.file+".new", c.file)
}
