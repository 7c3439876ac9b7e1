package redisio

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

var (
	errNoMaster  = errors.New("this is a Sentinel: its URL needs the option master_set=NAME, the name of the master")
	errOneServer = errors.New("this is a server of a cluster, and the client would be for a single server (ConnectLater and ForceSingleClient are not for clusters)")
)

const clusterHint = "the ACL user needs +cluster|slots and +cluster|shards, or the client cannot know the servers of the cluster"

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
		switch hello(ctx, client, "mode") {
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

// hello returns a field of the server's reply to HELLO, such as its mode, or "" if there is none.
func hello(ctx context.Context, client rueidis.CoreClient, what string) string {
	all, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return ""
	}
	field := all[what]
	text, _ := field.ToString()
	return text
}

// whySingle returns why a client is for a single server although that belongs to a cluster. rueidis returns
// such a client if the server refuses to list the others; locks on other servers could not be reached.
func whySingle(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) error {
	if options.ForceSingleClient {
		return errOneServer
	}
	for _, command := range []string{"SLOTS", "SHARDS"} {
		err := client.Do(ctx, client.B().Arbitrary("CLUSTER", command).Build()).Error()
		if _, refused := rueidis.IsRedisErr(err); refused {
			return fmt.Errorf("this is a server of a cluster, and does not name the others: %w", &Error{Hint: clusterHint, err: err})
		}
	}
	return &Error{Transient: true, err: errOneServer}
}

// checkAsking returns an error if the user may not send ASKING. While a slot is being moved, the old server
// would redirect its calls to the new one, and that would redirect them back, until their deadline.
func checkAsking(ctx context.Context, client rueidis.Client) error {
	for _, node := range client.Nodes() {
		err := node.Do(ctx, node.B().Arbitrary("ASKING").Build()).Error()
		refusal, refused := rueidis.IsRedisErr(err)
		switch {
		case refused && strings.HasPrefix(refusal.Error(), "NOPERM"):
			return &Error{Hint: "the ACL user needs +asking, or its calls have no reply while the cluster moves a slot", err: err}
		case err == nil:
			return nil
		}
	}
	return nil
}

// moved converts a redirection to a permanent error if the client is for a single server, since it does
// not follow redirections.
func (p *pool) moved(err *Error) *Error {
	if err == nil || p.cluster || !strings.HasPrefix(err.err.Error(), "MOVED ") {
		return err
	}
	return &Error{Hint: "the client is for a single server, but this is one of a cluster; " + clusterHint, err: err.err}
}
