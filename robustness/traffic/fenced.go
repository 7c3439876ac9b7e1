package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/lockkeeper-go/lockkeeper"
)

// Orders for a client that works under a fenced lock by itself: Take it with a lease of
// so many milliseconds, look whether it may be trusted, and say Took and its token;
// then Write a number, which it says together with the token, and give the lock back
// (Gave).
const (
	Take  = "take"
	Took  = "took"
	Write = "write"
	Gave  = "gave"
)

// take takes the lock, and looks at it once.
func (c *client) take(argument string) error {
	var lease int64
	if _, err := fmt.Sscan(argument, &lease); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		hold, err := c.system.FencedLock("protected").Acquire(ctx, lockkeeper.WithLease(time.Duration(lease)*time.Millisecond))
		if err != nil {
			return err
		}
		if hold.Valid() {
			c.taken = hold
			fmt.Fprintln(c.say, Took, hold.Token())
			return nil
		}
		_ = hold.Release(ctx) // it came too late to be of use
	}
}

// write does what it was told, believing that the lock is still held.
func (c *client) write(argument string) {
	fmt.Fprintln(c.say, Write, argument)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = c.taken.Release(ctx) // it may be lost by now
	fmt.Fprintln(c.say, Gave)
}
