// Fencing shows fenced writes. A holder can be paused at any moment for longer than its lease, and
// continue after another holder has taken over; no lock can prevent that. A store that checks the
// token of the hold refuses the late write.
//
//	go run ./examples/fencing
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper"
	"github.com/lockkeeper-go/lockkeeper/examples/internal/demo"
)

// guard reads or writes a record in Redis for the holder of a fenced lock, unless a later holder
// has used the record already. Reads pass the token, too: from then on no holder with a lower token
// can change what was read. The highest token is kept in the record itself, so that both change
// together.
//
// In an SQL database the guard is a column and a condition. In one transaction, a read is
//
//	UPDATE stock SET token = $1 WHERE id = $2 AND token <= $1
//	SELECT boxes FROM stock WHERE id = $2
//
// and a write is
//
//	UPDATE stock SET boxes = $3, token = $1 WHERE id = $2 AND token <= $1
//
// An UPDATE that changes no row is a refusal: roll the transaction back.
var guard = rueidis.NewLuaScript(`
-- KEYS[1]  the record, a hash: its fields, and the highest token in the field "token"
-- ARGV[1]  the token of the caller's hold
-- ARGV[2], ARGV[3] …  fields and their new values; none: the caller only reads
-- Reply: {'1', field, value …} done, with the record; {'0', highest token} refused
local highest = redis.call('HGET', KEYS[1], 'token') or '0'
if tonumber(ARGV[1]) < tonumber(highest) then
  return {'0', highest}
end
redis.call('HSET', KEYS[1], 'token', unpack(ARGV))
return {'1', unpack(redis.call('HGETALL', KEYS[1]))}
`)

// errLate is the store's refusal of a holder that has lost the lock to a later holder.
var errLate = errors.New("too late")

// stock is a record behind the guard.
type stock struct {
	redis rueidis.Client
	key   string
}

// use reads the record, or writes fields of it, for the holder with a token.
func (s stock) use(ctx context.Context, token int64, fields ...string) (record map[string]string, err error) {
	reply, err := guard.Exec(ctx, s.redis, []string{s.key}, append([]string{strconv.FormatInt(token, 10)}, fields...)).AsStrSlice()
	if err != nil {
		return nil, err
	}
	if reply[0] == "0" {
		return nil, fmt.Errorf("%w: the token is %d, and %s was used already", errLate, token, reply[1])
	}
	record = map[string]string{}
	for i := 1; i+1 < len(reply); i += 2 {
		record[reply[i]] = reply[i+1]
	}
	return record, nil
}

func main() {
	client, stop := demo.Redis()
	defer stop()
	anna, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	bert, stop := demo.Process(client, lockkeeper.Config{})
	defer stop()
	ctx := context.Background()
	boxes := stock{client, "stock:boxes"}
	_, err := boxes.use(ctx, 0, "boxes", "100")
	demo.Check(err)

	first, err := anna.FencedLock("boxes").Acquire(ctx, lockkeeper.WithLease(300*time.Millisecond))
	demo.Check(err)
	record, err := boxes.use(ctx, first.Token())
	demo.Check(err)
	fmt.Println("anna has token", first.Token(), "and reads", record["boxes"])
	fmt.Println("anna is paused for longer than her lease")

	second, err := bert.FencedLock("boxes").Acquire(ctx) // waits until the lease is over
	demo.Check(err)
	record, err = boxes.use(ctx, second.Token())
	demo.Check(err)
	fmt.Println("bert has token", second.Token(), "and reads", record["boxes"])

	fmt.Println("anna goes on, and takes 10")
	_, err = boxes.use(ctx, first.Token(), "boxes", "90")
	fmt.Println("anna is", err)

	record, err = boxes.use(ctx, second.Token(), "boxes", "80")
	demo.Check(err)
	fmt.Println("bert takes 20, and there are", record["boxes"])
	demo.Check(second.Release(ctx))
	fmt.Println("anna's release says:", first.Release(ctx))
}
