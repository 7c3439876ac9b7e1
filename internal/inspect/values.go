package inspect

import (
	"context"

	"github.com/redis/rueidis"
)

// hash is a hash with the names of the fields to read. values are the fields found; there are none if a value is too
// long, since such a hash belongs to another application.
type hash struct {
	key    string
	names  []string
	values [][2]string
	err    error
	// changed: a field was removed before its value was read.
	changed bool
}

// The maximum lengths of a hold count and of an entry of the wait queue, in bytes.
const (
	longestCount = 18
	longestEntry = 200
)

// readShort reads the values of the named fields of hashes. It asks for the lengths first, and skips a hash with a
// value longer than limit.
func (in Inspector) readShort(ctx context.Context, hashes []*hash, limit int64) {
	var lengths, values []rueidis.Completed
	for _, h := range hashes {
		for _, name := range h.names {
			lengths = append(lengths, in.Command("HSTRLEN", h.key, name))
		}
	}
	results := in.all(ctx, lengths)
	var read []*hash
	for _, h := range hashes {
		short := len(h.names) > 0 && h.err == nil
		for range h.names {
			n, err := results[0].AsInt64()
			results = results[1:]
			if err != nil {
				h.err = err
			}
			short = short && err == nil && n <= limit
		}
		if short {
			read = append(read, h)
			values = append(values, in.Command(append([]string{"HMGET", h.key}, h.names...)...))
		}
	}
	for i, result := range in.all(ctx, values) {
		h := read[i]
		var texts []rueidis.RedisMessage
		texts, h.err = result.ToArray()
		for j, text := range texts[:min(len(texts), len(h.names))] {
			value, err := text.ToString()
			if err != nil {
				h.changed = true
				continue
			}
			h.values = append(h.values, [2]string{h.names[j], value})
		}
	}
}
