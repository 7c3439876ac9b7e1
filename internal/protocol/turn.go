package protocol

import (
	"strconv"
	"strings"

	"github.com/lockkeeper-go/lockkeeper/internal/machine"
)

// ParseTurn reads a message of a turn channel, "<term> <seq> <token> <key>": the lock with that key
// was transferred to the term. The token is 0 if none was drawn. If seq is 0, a process wants the lock,
// which that term has, or permits of that semaphore are free. The key comes last since it may contain spaces.
func ParseTurn(payload string) (key string, t machine.Transfer, ok bool) {
	words := strings.SplitN(payload, " ", 4)
	if len(words) < 4 || words[3] == "" {
		return "", machine.Transfer{}, false
	}
	term, badTerm := strconv.ParseUint(words[0], 10, 64)
	seq, badSeq := strconv.ParseUint(words[1], 10, 64)
	token, badToken := strconv.ParseUint(words[2], 10, 63)
	if badTerm != nil || badSeq != nil || badToken != nil || term == 0 {
		return "", machine.Transfer{}, false
	}
	t = machine.Transfer{Term: term, Seq: seq}
	if token > 0 {
		t.Tokens = []int64{int64(token)}
	}
	return words[3], t, true
}
