package redisio

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
)

func TestReplies(t *testing.T) {
	s := redistest.Shared(t)
	r := open(t, connect(t, s.URL()))
	for seq, test := range []struct {
		lua  string
		want Reply
	}{
		{"return nil", Reply{Nil: true}},
		{"return false", Reply{Nil: true}},
		{"return 7", Reply{N: [3]int64{7}}},
		{"return -2", Reply{N: [3]int64{-2}}},
		{"return 9007199254740991", Reply{N: [3]int64{9007199254740991}}},
		{"return 'text'", Reply{S: [2]string{"text"}}},
		{"return '12'", Reply{S: [2]string{"12"}}},
		{"return redis.status_reply('OK')", Reply{S: [2]string{"OK"}}},
		{"return {}", Reply{}},
		{"return {1, 'a'}", Reply{N: [3]int64{1}, S: [2]string{"a"}}},
		{"return {1, 2, 'a', 'b'}", Reply{N: [3]int64{1, 2}, S: [2]string{"a", "b"}}},
		{"return {'a', 1, '', 2}", Reply{N: [3]int64{1, 2}, S: [2]string{"a", ""}}},
		{"return {-2, ''}", Reply{N: [3]int64{-2}}},
		{"return {1, 2, 3, 4, 'a', 'b', 'c'}", Reply{N: [3]int64{1, 2, 3}, S: [2]string{"a", "b"}}},
	} {
		in := newInbox()
		r.Run(Call{Script: lua(test.lua), Keys: []string{redistest.Name(t)}, Deadline: soon(), To: in, Seq: uint64(seq)})
		if got := in.await(t, uint64(seq)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.lua, got, test.want)
		}
	}
}

func TestKeysAndArgumentsArrive(t *testing.T) {
	s := redistest.Shared(t)
	r := open(t, connect(t, s.URL()))
	in := newInbox()
	script := lua("return {#KEYS, #ARGV, KEYS[2], ARGV[3]}")
	r.Run(Call{Script: script, Keys: []string{"k1", "k2"}, Args: []string{"a", "", "c d\r\n\x00"}, Deadline: soon(), To: in})
	if got, want := in.await(t, 0), (Reply{N: [3]int64{2, 3}, S: [2]string{"k2", "c d\r\n\x00"}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.Run(Call{Script: script, Deadline: soon(), To: in, Seq: 1})
	if got := in.await(t, 1); got != (Reply{}) {
		t.Errorf("without keys and arguments: %+v", got)
	}
}
