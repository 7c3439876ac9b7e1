package redisio

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	r := open(t, connect(t, redistest.Shared(t).URL()))
	for _, test := range []struct {
		lua   string
		shape scripts.Shape
		want  Reply
	}{
		{"return nil", scripts.Shape{Nil: true}, Reply{Nil: true}},
		{"return false", scripts.Shape{Numbers: 1, Nil: true}, Reply{Nil: true}},
		{"return -2", number, Reply{N: [3]int64{-2}}},
		{"return 9007199254740991", number, Reply{N: [3]int64{9007199254740991}}},
		{"return '12'", scripts.Shape{Texts: 1}, Reply{S: [2]string{"12"}}},
		{"return redis.status_reply('OK')", scripts.Shape{Texts: 1}, Reply{S: [2]string{"OK"}}},
		{"return {}", scripts.Shape{}, Reply{}},
		{"return {1, 'a'}", scripts.Shape{Numbers: 1, Texts: 1, Nil: true}, Reply{N: [3]int64{1}, S: [2]string{"a"}}},
		{"return {'a', 1, '', 2}", scripts.Shape{Numbers: 2, Texts: 2}, Reply{N: [3]int64{1, 2}, S: [2]string{"a", ""}}},
		{"return {1, 2, 3}", scripts.Shape{Numbers: 3}, Reply{N: [3]int64{1, 2, 3}}},
		{"return {#KEYS, #ARGV, KEYS[2], ARGV[3]}", scripts.Shape{Numbers: 2, Texts: 2}, Reply{N: [3]int64{2, 3}, S: [2]string{"k2", "c d\r\n\x00"}}},

		{"return nil", number, Reply{Err: errMisfit}},
		{"return redis.status_reply('OK')", number, Reply{Err: errMisfit}},
		{"return {}", number, Reply{Err: errMisfit}},
		{"return {1, 2}", number, Reply{Err: errMisfit}},
		{"return {1}", scripts.Shape{Numbers: 1, Texts: 1}, Reply{Err: errMisfit}},
		{"return {1, {2}}", scripts.Shape{Numbers: 2}, Reply{Err: errMisfit}},
		{"return {redis.error_reply('ERR no'), 1}", number, Reply{Err: errMisfit}},
		{"return {1, 2, 3, 4}", scripts.Shape{Numbers: 3}, Reply{Err: errMisfit}},
	} {
		if got := run(t, r, lua(test.lua, test.shape), []string{"k1", "k2"}, "a", "", "c d\r\n\x00"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.lua, got, test.want)
		}
	}
	if got := run(t, r, lua("return {#KEYS, #ARGV}", scripts.Shape{Numbers: 2}), nil); got != (Reply{}) {
		t.Errorf("without keys and arguments: %+v", got)
	}
}
