package scripts_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

// db is a Redis that the scripts are tested on, with a listener that hears what is
// published on the channels of locks.
type db struct {
	rueidis.Client
	*listener
}

// eachRedis runs a test on a real server, in both protocols.
func eachRedis(t *testing.T, test func(t *testing.T, db *db)) {
	t.Helper()
	for name, resp2 := range map[string]bool{"RESP3": false, "RESP2": true} {
		t.Run(name, func(t *testing.T) { test(t, connect(t, redistest.Shared(t).Addr(), resp2)) })
	}
}

func connect(t *testing.T, addr string, resp2 bool) *db {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{addr},
		AlwaysRESP2:       resp2,
		DisableCache:      true,
		DisableRetry:      true,
		ForceSingleClient: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &db{client, listen(t, client)}
}

// do runs a command and gives its reply as text: strings and numbers as they are,
// an error with "-" before it, null as "(nil)", an array as "[a b]".
func (d *db) do(t *testing.T, words ...string) string {
	t.Helper()
	return text(d.command(t, words...).ToMessage())
}

func (d *db) command(t *testing.T, words ...string) rueidis.RedisResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Limit)
	defer cancel()
	return d.Do(ctx, d.B().Arbitrary(words...).Build())
}

func text(m rueidis.RedisMessage, err error) string {
	if rueidis.IsRedisNil(err) {
		return "(nil)"
	}
	if err != nil {
		return "-" + err.Error()
	}
	if n, err := m.ToInt64(); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if s, err := m.ToString(); err == nil {
		return s
	}
	elements, _ := m.ToArray()
	texts := make([]string, len(elements))
	for i, e := range elements {
		texts[i] = text(e, e.Error())
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func (d *db) load(t *testing.T, s *scripts.Script) (sha string) {
	t.Helper()
	return d.do(t, "SCRIPT", "LOAD", s.Source)
}

// run runs a script that was loaded before.
func (d *db) run(t *testing.T, s *scripts.Script, keys, args []string) string {
	t.Helper()
	words := append([]string{"EVALSHA", s.SHA, strconv.Itoa(len(keys))}, keys...)
	return d.do(t, append(words, args...)...)
}

// words are the arguments of a row, where "-" stands for "".
func words(args string) []string {
	words := strings.Fields(args)
	for i, w := range words {
		if w == "-" {
			words[i] = ""
		}
	}
	return words
}
