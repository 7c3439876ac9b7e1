// Package hello reads what a Redis server says about itself in its reply to HELLO.
package hello

import (
	"context"

	"github.com/redis/rueidis"
)

// Field returns a field of the server's reply to HELLO, such as "mode", or "" if there is none.
func Field(ctx context.Context, client rueidis.CoreClient, name string) string {
	all, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return ""
	}
	field := all[name]
	text, _ := field.ToString()
	return text
}
