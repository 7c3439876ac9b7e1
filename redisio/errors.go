package redisio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
)

// Error is the error of a call, classified by what can be done about it.
type Error struct {
	// A Transient error may be gone at the next try: a network error, or a server that loads
	// its data, is busy, fails over or is full. All other errors are permanent.
	Transient bool
	// Unsure reports that the script may have run, or may still run.
	Unsure bool
	// Hint says what to do about the error; it may be empty.
	Hint string
	// Err is the error of the client.
	Err error
}

// Error returns Redis's message and the hint.
func (e *Error) Error() string {
	if e == nil || e.Err == nil {
		return "no error"
	}
	text := printable.Text(e.Err.Error()) // it may quote a key
	if text == "" {
		text = "an error with an empty message"
	}
	if e.Hint == "" {
		return text
	}
	return text + " (" + e.Hint + ")"
}

// Unwrap returns the error of the client.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Classify classifies an error of the client; it returns nil for nil.
func Classify(err error) *Error {
	if err == nil {
		return nil
	}
	var classified *Error
	if errors.As(err, &classified) {
		return classified
	}
	text := err.Error()
	if _, fromRedis := rueidis.IsRedisErr(err); fromRedis || strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH") {
		class := refusal.Classify(text)
		return &Error{Transient: class.Transient, Unsure: class.Unsure, Hint: class.Hint, Err: err}
	}
	if errors.Is(err, rueidis.ErrClosing) {
		return &Error{Unsure: true, Hint: "the rueidis client was closed; close the Lockkeeper system first", Err: err}
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return &Error{Transient: true, Err: err} // nothing was sent
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errTimeout
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("the connection was closed by the server, or by a proxy before it: %w", err)
	}
	return &Error{Transient: true, Unsure: true, Err: err}
}

var errTimeout = errors.New("no reply from Redis in time")
