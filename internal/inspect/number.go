package inspect

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

// Number is a number that may be unknown; an unknown number is null in JSON.
type Number struct {
	N     int64
	Known bool
}

// Known returns a known number.
func Known(n int64) Number { return Number{n, true} }

// String returns "?" for an unknown number.
func (n Number) String() string {
	if !n.Known {
		return "?"
	}
	return strconv.FormatInt(n.N, 10)
}

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return []byte("null"), nil
	}
	return []byte(n.String()), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) (err error) {
	*n = Number{}
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	n.N, err = strconv.ParseInt(string(text), 10, 64)
	n.Known = err == nil
	return err
}

// plus returns the sum; it is unknown if one of the numbers is unknown.
func (n Number) plus(other Number) Number {
	if !n.Known || !other.Known {
		return Number{}
	}
	return Known(n.N + other.N)
}

// The largest numbers that the scripts accept; see scripts/common/number.lua.
const (
	maxExact   = 1<<53 - 1
	maxPermits = 1<<31 - 1
)

// looksLikeNumber matches the values that the scripts show in their errors. Other values may be secrets.
var looksLikeNumber = regexp.MustCompile(`^(-?[0-9]{1,19}|[0-9]{20})$`)

// holdCount matches hold counts; see scripts/common/foreign_hash.lua. Another value belongs to another application.
var holdCount = regexp.MustCompile(`^[0-9]{1,18}$`)

// exact parses a number as the scripts do. If the scripts refuse the text, the number is unknown, and problem is the
// reason.
func exact(what, text string, limit int64) (n Number, problem string) {
	value, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && strconv.FormatInt(value, 10) == text && value <= limit && value >= -limit:
		return Known(value), ""
	case !looksLikeNumber.MatchString(text):
		text = "no number"
	default:
		text = strconv.Quote(text)
	}
	return Number{}, fmt.Sprintf("%s is %s, but must be an integer up to %d, without zeros or a plus in front", what, text, limit)
}
