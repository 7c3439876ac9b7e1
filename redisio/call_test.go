package redisio

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestReplies(t *testing.T) {
	s := redistest.Shared(t)
	r := open(t, connect(t, s.URL()))
	for seq, test := range []struct {
		lua   string
		shape scripts.Shape
		want  Reply
	}{
		{"return nil", scripts.Shape{Nil: true}, Reply{Nil: true}},
		{"return false", scripts.Shape{Numbers: 1, Nil: true}, Reply{Nil: true}},
		{"return 7", number, Reply{N: [3]int64{7}}},
		{"return -2", number, Reply{N: [3]int64{-2}}},
		{"return 9007199254740991", number, Reply{N: [3]int64{9007199254740991}}},
		{"return 'text'", scripts.Shape{Texts: 1}, Reply{S: [2]string{"text"}}},
		{"return '12'", scripts.Shape{Texts: 1}, Reply{S: [2]string{"12"}}},
		{"return redis.status_reply('OK')", scripts.Shape{Texts: 1}, Reply{S: [2]string{"OK"}}},
		{"return {}", scripts.Shape{}, Reply{}},
		{"return {1}", number, Reply{N: [3]int64{1}}},
		{"return {1, 'a'}", scripts.Shape{Numbers: 1, Texts: 1, Nil: true}, Reply{N: [3]int64{1}, S: [2]string{"a"}}},
		{"return {1, 2, 'a', 'b'}", scripts.Shape{Numbers: 2, Texts: 2}, Reply{N: [3]int64{1, 2}, S: [2]string{"a", "b"}}},
		{"return {'a', 1, '', 2}", scripts.Shape{Numbers: 2, Texts: 2}, Reply{N: [3]int64{1, 2}, S: [2]string{"a", ""}}},
		{"return {1, 2, 3}", scripts.Shape{Numbers: 3}, Reply{N: [3]int64{1, 2, 3}}},

		{"return nil", number, Reply{Err: errMisfit}},
		{"return redis.status_reply('OK')", number, Reply{Err: errMisfit}},
		{"return '1'", number, Reply{Err: errMisfit}},
		{"return {}", number, Reply{Err: errMisfit}},
		{"return {1, 2}", number, Reply{Err: errMisfit}},
		{"return {1}", scripts.Shape{Numbers: 1, Texts: 1}, Reply{Err: errMisfit}},
		{"return {1, {2}}", scripts.Shape{Numbers: 2}, Reply{Err: errMisfit}},
		{"return {redis.error_reply('ERR no'), 1}", number, Reply{Err: errMisfit}},
		{"return {1, 2, 3, 4}", scripts.Shape{Numbers: 3}, Reply{Err: errMisfit}},
	} {
		in := newInbox()
		r.Run(Call{Script: lua(test.lua, test.shape), Keys: []string{redistest.Name(t)}, Deadline: soon(), To: in, Seq: uint64(seq)})
		if got := in.await(t, uint64(seq)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.lua, got, test.want)
		}
	}
}

func TestKeysAndArgumentsArrive(t *testing.T) {
	s := redistest.Shared(t)
	r := open(t, connect(t, s.URL()))
	in := newInbox()
	script := lua("return {#KEYS, #ARGV, KEYS[2] or '', ARGV[3] or ''}", scripts.Shape{Numbers: 2, Texts: 2})
	r.Run(Call{Script: script, Keys: []string{"k1", "k2"}, Args: []string{"a", "", "c d\r\n\x00"}, Deadline: soon(), To: in})
	if got, want := in.await(t, 0), (Reply{N: [3]int64{2, 3}, S: [2]string{"k2", "c d\r\n\x00"}}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.Run(Call{Script: script, Deadline: soon(), To: in, Seq: 1})
	if got := in.await(t, 1); got != (Reply{}) {
		t.Errorf("without keys and arguments: %+v", got)
	}
}
