package pubsub

import "github.com/lockkeeper-go/lockkeeper/redisio"

// Listener receives the events of subscriptions, on the goroutine that reads the connection and on the goroutine that
// writes it. It must not block.
type Listener interface {
	// Message reports a message on the channel. It may be called twice for one message, and for
	// a channel that was removed a moment ago.
	Message(channel, payload string)
	// Subscribed reports that from now on no message on the channel is missed. It is called again after every
	// reconnect, since messages may have been missed before, and if a connection may have broken before another
	// connection replaced it. It is called for the first channel before any other channel, unless the first channel was
	// refused.
	Subscribed(channel string)
	// Refused reports that Redis does not allow this client to subscribe to the channels.
	Refused(channels []string, err *redisio.Error)
	// Failing reports that a server can be reached, but no subscription has succeeded there for a while. command is the
	// command that fails; server is the address for shard channels, otherwise "". Failing is called once, until
	// Recovered reports that a subscription has succeeded there.
	Failing(command, server string, err *redisio.Error)
	Recovered(command, server string)
}
