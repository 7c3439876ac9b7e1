package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Commands for a client that works under a fenced lock: Take it with a lease in
// milliseconds, check that the hold is valid, and answer Took with the token; then Write a
// number, which it answers together with the token, and release the lock (Gave).
const (
	Take  = "take"
	Took  = "took"
	Write = "write"
	Gave  = "gave"
)

// take acquires the lock, and checks the hold once.
func (c *client) take(argument string) error {
	var lease int64
	if _, err := fmt.Sscan(argument, &lease); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		hold, err := c.system.FencedLock("protected").Acquire(ctx, lockkeeper.WithLease(time.Duration(lease)*time.Millisecond))
		if err != nil {
			return err
		}
		if hold.Valid() {
			c.taken = hold
			fmt.Fprintln(c.answers, Took, hold.Token())
			return nil
		}
		_ = hold.Release(ctx) // it came too late to be valid
	}
}

// write writes without another check whether the lock is still held.
func (c *client) write(argument string) {
	fmt.Fprintln(c.answers, Write, argument)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = c.taken.Release(ctx) // it may be lost by now
	fmt.Fprintln(c.answers, Gave)
}
