package protocol

import (
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/expirable"
	"github.com/lockkeeper-go/lockkeeper/internal/machine"
	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
)

// A reply to a renewal that does not say of each permit whether it is valid is none.
func TestReadExpirable_NeedsAReplyForEachPermit(t *testing.T) {
	t.Parallel()
	command := expirable.Command{Kind: expirable.Renew, IDs: []machine.PermitID{{'a'}, {'b'}}}
	for digits, want := range map[string]bool{"": false, "1": false, "10": true} {
		got := ReadExpirable(&command, redisclient.Reply{S: [2]string{digits}})
		if is := got.Err == nil; is != want || !is && !got.Unsure {
			t.Errorf("%q is read as %+v", digits, got)
		}
	}
}
