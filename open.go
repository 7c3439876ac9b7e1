package lockkeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// OpenOption changes how Open connects or configures the System.
type OpenOption func(*openRequest)

// openRequest is what the options of an Open ask for.
type openRequest struct {
	client *rueidis.ClientOption
	amend  []func(*rueidis.ClientOption)
	// sentinels are applied after amend.
	sentinels []func(*rueidis.SentinelOption)
	config    Config
	// actors is the caller's actor system if inActors is set.
	actors   *actor.ActorSystem
	inActors bool
	// noTLS reports a WithTLS(nil): an error, since the connection would not use TLS.
	noTLS bool
}

// WithConfig sets the Config of the System. Its Logger is also used by the actor system that Open creates.
func WithConfig(c Config) OpenOption { return func(r *openRequest) { r.config = c } }

// WithActorSystem starts the System in the caller's actor system, which Close does not shut down.
func WithActorSystem(system *actor.ActorSystem) OpenOption {
	return func(r *openRequest) { r.actors, r.inActors = system, true }
}

// WithTLS connects with TLS, also to Sentinels and even if the URL begins with redis://. Set RootCAs
// for a private CA, and Certificates for client certificates. Without a ServerName, the certificate of
// each server must be for the host name in its address or for one of the names in the URL.
func WithTLS(c *tls.Config) OpenOption {
	return func(r *openRequest) {
		r.noTLS = r.noTLS || c == nil
		r.amend = append(r.amend, func(o *rueidis.ClientOption) { o.TLSConfig, o.Sentinel.TLSConfig = c, c })
	}
}

// WithSentinelTLS sets the TLS configuration for Sentinels, if it differs from that for the servers;
// nil disables TLS.
func WithSentinelTLS(c *tls.Config) OpenOption {
	return amendsSentinels(func(o *rueidis.SentinelOption) { o.TLSConfig = c })
}

// WithSentinelUser authenticates to Sentinels as the named user; an empty name is the default user.
// Without this option no password is sent to Sentinels.
func WithSentinelUser(name, password string) OpenOption {
	return amendsSentinels(func(o *rueidis.SentinelOption) { o.Username, o.Password = name, password })
}

// WithUser authenticates to the servers, but not to Sentinels, as an ACL user; an empty name is the
// default user.
func WithUser(name, password string) OpenOption {
	return amends(func(o *rueidis.ClientOption) { o.Username, o.Password = name, password })
}

// WithDatabase selects the database with that number.
func WithDatabase(number int) OpenOption {
	return amends(func(o *rueidis.ClientOption) { o.SelectDB = number })
}

// WithClientName sets the name of the connections, for CLIENT LIST.
func WithClientName(name string) OpenOption {
	return amends(func(o *rueidis.ClientOption) { o.ClientName = name })
}

func amends(f func(*rueidis.ClientOption)) OpenOption {
	return func(r *openRequest) { r.amend = append(r.amend, f) }
}

func amendsSentinels(f func(*rueidis.SentinelOption)) OpenOption {
	return func(r *openRequest) { r.sentinels = append(r.sentinels, f) }
}

// WithClientOption uses o for the Redis client instead of a URL, which must be empty. Open disables
// retries and the client-side cache; the other options of Open are applied after o.
func WithClientOption(o rueidis.ClientOption) OpenOption {
	return func(r *openRequest) { r.client = &o }
}

// Open connects to the Redis of a URL, and starts a System in a new actor system, or in that of
// WithActorSystem. It does the work of Connect and New; see redisio.Connect for the URLs, which may
// name Sentinels and clusters. Close of the System also closes the client, and the actor system if
// Open has created it. Without a Config.Logger nothing is logged, or with WithActorSystem by that
// system's logger.
//
// ctx bounds the time to connect; it need not end, since a server that does not answer is given up
// after a few seconds. The error is ErrInvalid if the URL or an option is wrong, for instance if the
// URL is that of a Sentinel and lacks master_set. It is ErrUnavailable if Redis does not answer, or
// ctx ends; trying again may help. It is ErrRejected if Redis refuses the client, if one side does
// not accept the TLS certificate of the other, or if a server of a cluster refuses to list the other
// servers.
func Open(ctx context.Context, url string, options ...OpenOption) (*System, error) {
	const op = "open"
	if ctx == nil {
		return nil, fmt.Errorf("lockkeeper: %s: %w: %w", op, ErrInvalid, errNoContext)
	}
	var r openRequest
	for _, option := range options {
		if option == nil {
			return nil, fmt.Errorf("lockkeeper: %s: %w: %w", op, ErrInvalid, errNoOption)
		}
		option(&r)
	}
	if r.noTLS {
		return nil, fmt.Errorf("lockkeeper: %s: %w: the configuration of WithTLS is nil", op, ErrInvalid)
	}
	if r.inActors && r.actors == nil {
		return nil, fmt.Errorf("lockkeeper: %s: %w: the actor system is nil", op, ErrInvalid)
	}
	client, err := r.connect(ctx, url)
	if client, err = connectResult(op, client, err); err != nil {
		return nil, err
	}
	o := &openedResources{client: client, closed: make(chan struct{})}
	system := r.actors
	if !r.inActors {
		o.actors = ownActors(r.config.Logger)
		system = o.actors
	}
	s, err := New(system, client, r.config)
	if err != nil {
		o.close()
		return nil, err
	}
	s.owned = o
	return s, nil
}

func (r *openRequest) connect(ctx context.Context, url string) (rueidis.Client, error) {
	var options rueidis.ClientOption
	switch {
	case r.client == nil:
		var err error
		if options, err = redisio.Options(url); err != nil {
			return nil, err
		}
	case url != "":
		return nil, errors.New("with WithClientOption the URL must be empty")
	default:
		options = *r.client
	}
	for _, amend := range r.amend {
		amend(&options)
	}
	for _, amend := range r.sentinels {
		amend(&options.Sentinel)
	}
	return redisio.ConnectWith(ctx, options)
}

// ownActors returns a new actor system for Open.
func ownActors(logger *slog.Logger) *actor.ActorSystem {
	logger = printable.Logger(orDefault(logger, slog.New(slog.DiscardHandler))) // the actor system logs names of locks, too
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // the throttle has a goroutine for that long
}

// openedResources is what Open has created for its System, and what Close closes.
type openedResources struct {
	client rueidis.Client
	actors *actor.ActorSystem // nil if it is the caller's
	once   sync.Once
	closed chan struct{}
}

func (o *openedResources) close() {
	o.client.Close()
	if o.actors != nil {
		o.actors.Shutdown()
	}
	close(o.closed)
}

// closeAfter calls close once the System has ended, and waits for that or for ctx.
func (o *openedResources) closeAfter(ctx context.Context, ended <-chan struct{}) {
	o.once.Do(func() {
		go func() {
			<-ended
			o.close()
		}()
	})
	select {
	case <-o.closed:
	case <-ctx.Done():
	}
}
