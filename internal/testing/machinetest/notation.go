package machinetest

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// Request reads the options of a request that comes now.
func Request(now time.Duration, options ...string) (req machine.Request) {
	for _, option := range options {
		switch key, value, _ := strings.Cut(option, "="); key {
		case "owner":
			req.Owner = Owner(option)
		case "fixed":
			req.Lease = Duration(value)
		case "maxhold":
			req.MaxHold = Duration(value)
		case "atleast":
			req.AtLeast = Duration(value)
		case "until": // a time
			req.Deadline = Duration(value)
		case "within": // a duration
			req.Deadline = now + Duration(value)
		case "unwatched":
			req.Unwatched = true
		case "try":
			req.Try = true
		case "once":
			req.NoReentry = true
		case "shared":
			req.Mode = machine.Shared
		case "fenced":
			req.Fenced = true
		default:
			panic("no such option: " + option)
		}
	}
	return req
}

// Failures are the failures that a script can name.
var Failures = map[string]machine.Failure{
	"loading": {Err: errors.New("LOADING"), Transient: true},
	"full":    {Err: errors.New("OOM"), Transient: true},
	"timeout": {Err: errors.New("i/o timeout"), Transient: true, Unsure: true},
	"denied":  {Err: errors.New("NOPERM")},
}

// Owner returns the owner in "owner=7", and 0 for any other word.
func Owner(word string) machine.Owner {
	if owner, ok := strings.CutPrefix(word, "owner="); ok {
		return machine.Owner(Number(owner))
	}
	return 0
}

// Duration reads a duration.
func Duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// Number reads a number.
func Number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
