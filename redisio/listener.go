package redisio

// Listener gets the events of the subscriptions, on the goroutine that reads the connection and
// on the one that writes. It must not block.
type Listener interface {
	// Message reports a message on the channel. It may be called twice for one message, and for
	// a channel that was removed a moment ago.
	Message(channel, payload string)
	// Subscribed reports that from now on no message on the channel is missed. It is called
	// again after every reconnect, since messages may have been missed before. For the first
	// channel it is called before it is called for any other one, unless that was refused.
	Subscribed(channel string)
	// Refused reports that Redis does not let this client subscribe to the channels.
	Refused(channels []string, err *Error)
	// Failing reports that a server is reached, and yet no subscription there has succeeded for a
	// while: command is what fails. server is its address, with shard channels, else "". It is called
	// once, until Recovered reports that a subscription there has succeeded.
	Failing(command, server string, err *Error)
	Recovered(command, server string)
}
