package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// store keeps how many boxes there are. Who reads or writes says by which hold.
type store interface {
	read(ctx context.Context, token int64) (boxes int, err error)
	write(ctx context.Context, token int64, boxes int) error
}

// errStale is what a guard says to a holder who has lost the lock to a later one.
var errStale = errors.New("refused")

func stale(token, highest int64) error {
	return fmt.Errorf("%w: the token is %d, and %d was here already", errStale, token, highest)
}

// unguarded is a key in Redis that whoever likes may write: the negative control.
type unguarded struct {
	redis rueidis.Client
	key   string
}

func (u unguarded) read(ctx context.Context, _ int64) (int, error) {
	n, err := u.redis.Do(ctx, u.redis.B().Get().Key(u.key).Build()).AsInt64()
	return int(n), err
}

func (u unguarded) write(ctx context.Context, _ int64, boxes int) error {
	return u.redis.Do(ctx, u.redis.B().Set().Key(u.key).Value(strconv.Itoa(boxes)).Build()).Error()
}

//go:embed guard.lua
var guardSource string

var guard = rueidis.NewLuaScript(guardSource)

// guarded is a record in Redis behind guard.lua. Readers show their token, too: from
// then on nobody with a lower one can write, and change what was read.
type guarded struct {
	redis rueidis.Client
	key   string
}

func (g guarded) read(ctx context.Context, token int64) (int, error) {
	record, err := g.run(ctx, token)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(record["boxes"])
}

func (g guarded) write(ctx context.Context, token int64, boxes int) error {
	_, err := g.run(ctx, token, "boxes", strconv.Itoa(boxes))
	return err
}

func (g guarded) run(ctx context.Context, token int64, fields ...string) (record map[string]string, err error) {
	args := append([]string{strconv.FormatInt(token, 10)}, fields...)
	reply, err := guard.Exec(ctx, g.redis, []string{g.key}, args).ToArray()
	if err != nil {
		return nil, err
	}
	if done, err := reply[0].AsInt64(); err != nil || done == 0 {
		highest, errHighest := reply[1].AsInt64()
		return nil, errors.Join(err, errHighest, stale(token, highest))
	}
	record = map[string]string{}
	for i := 1; i+1 < len(reply); i += 2 {
		field, errField := reply[i].ToString()
		value, errValue := reply[i+1].ToString()
		if err := errors.Join(errField, errValue); err != nil {
			return nil, err
		}
		record[field] = value
	}
	return record, nil
}
