package redisio

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/hello"
	"github.com/lockkeeper-go/lockkeeper/internal/refusal"
)

var (
	errNoMaster  = errors.New("this is a Sentinel: its URL needs the option master_set=NAME, the name of the master")
	errOneServer = errors.New(
		"this is a server of a cluster, and the client would be for a single server " +
			"(ConnectLater and ForceSingleClient are not for clusters)")
)

// checkMode returns the client if it has the right mode for its server; otherwise it closes the client and
// returns an error. A server that does not reply to HELLO is accepted.
func checkMode(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) (rueidis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var err error
	switch {
	case client.Mode() == rueidis.ClientModeCluster:
		err = checkAsking(ctx, client)
	case options.Sentinel.MasterSet == "" && client.Mode() == rueidis.ClientModeStandalone:
		switch hello.Field(ctx, client, "mode") {
		case "sentinel":
			err = errNoMaster
		case "cluster":
			err = whySingle(ctx, client, options)
		}
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// whySingle returns why a client is for a single server although the server belongs to a cluster. rueidis returns such
// a client if the server refuses to list the others; locks on other servers could not be reached.
func whySingle(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) error {
	if options.ForceSingleClient {
		return errOneServer
	}
	for _, command := range []string{"SLOTS", "SHARDS"} {
		err := client.Do(ctx, client.B().Arbitrary("CLUSTER", command).Build()).Error()
		if _, refused := rueidis.IsRedisErr(err); refused {
			return fmt.Errorf("this is a server of a cluster, and does not name the others: %w", &Error{Hint: refusal.ClusterHint, Err: err})
		}
	}
	return &Error{Transient: true, Err: errOneServer}
}

// checkAsking returns an error if the user may not send ASKING. While a slot is being moved, the old server would
// redirect the client's calls to the new server, and the new server would redirect them back, until their deadline.
func checkAsking(ctx context.Context, client rueidis.Client) error {
	for _, node := range client.Nodes() {
		err := node.Do(ctx, node.B().Arbitrary("ASKING").Build()).Error()
		reply, refused := rueidis.IsRedisErr(err)
		switch {
		case refused && strings.HasPrefix(reply.Error(), "NOPERM"):
			return &Error{Hint: "the ACL user needs +asking, or its calls have no reply while the cluster moves a slot", Err: err}
		case err == nil:
			return nil
		}
	}
	return nil
}
