package protocol

import (
	"context"
	"testing"

	"github.com/lockkeeper-go/lockkeeper/internal/redisclient"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// The machines, which know no client, tell it by its text: the error of an earlier try says more.
func TestRead_ACallThatTimesOutHasNoReply(t *testing.T) {
	var l Lock
	if r := l.Read(redisclient.Reply{Err: redisio.Classify(context.DeadlineExceeded)}); !r.IsNoReply() || !r.Transient || !r.Unsure {
		t.Errorf("a call without a reply in time is read as %+v", r.Failure)
	}
}
