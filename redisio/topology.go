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

// clusterHint says what a client needs to use a cluster.
const clusterHint = "the ACL user needs +cluster|slots and +cluster|shards, or the client cannot know the servers of the cluster"

// asMeant returns the client, unless it takes its server for something else: then it closes the
// client. A server that does not say what it is passes.
func asMeant(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) (rueidis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var err error
	switch {
	case client.Mode() == rueidis.ClientModeCluster:
		err = mayFollow(ctx, client)
	case options.Sentinel.MasterSet == "" && client.Mode() == rueidis.ClientModeStandalone:
		switch hello(ctx, client, "mode") {
		case "sentinel":
			err = errNoMaster
		case "cluster":
			err = alone(ctx, client, options)
		}
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// hello is what a server says of itself, such as its mode, to whomever asks; "" if it does not say.
func hello(ctx context.Context, client rueidis.CoreClient, what string) string {
	all, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return ""
	}
	said := all[what]
	text, _ := said.ToString()
	return text
}

// alone returns why a client is for a single server, though that is one of a cluster. rueidis
// makes such a client when the server refuses to name the others; all locks of theirs would be
// out of reach.
func alone(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) error {
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

// mayFollow returns an error if the user may not follow a slot that is being moved: the old
// server would send it to the new one, and that one back, until the call's deadline.
func mayFollow(ctx context.Context, client rueidis.Client) error {
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

// moved makes a redirection final, for a client that is for a single server: it will never
// follow.
func (p *pool) moved(err *Error) *Error {
	if err == nil || p.cluster || !strings.HasPrefix(err.err.Error(), "MOVED ") {
		return err
	}
	return &Error{Hint: "the client is for a single server, but this is one of a cluster; " + clusterHint, err: err.err}
}
