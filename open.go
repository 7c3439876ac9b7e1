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

	"github.com/lockkeeper-go/lockkeeper/internal/host"
	"github.com/lockkeeper-go/lockkeeper/internal/printable"
	"github.com/lockkeeper-go/lockkeeper/redisio"
)

// OpenOption changes how Open connects or configures the System.
type OpenOption func(*openRequest)

// openRequest collects the options of an Open.
type openRequest struct {
	// amend lists changes of the client's options.
	amend []func(*rueidis.ClientOption)
	// final lists the changes that are made last.
	final  []func(*rueidis.ClientOption)
	config Config
	// actors is the caller's actor system; nil if Open creates one.
	actors *actor.ActorSystem
	// invalid is why an option cannot be used.
	invalid error
}

// WithConfig sets the Config of the System. Its Logger is also used by the actor system that Open creates.
func WithConfig(c Config) OpenOption { return func(r *openRequest) { r.config = c } }

// WithActorSystem starts the System in the caller's actor system, which Close does not shut down.
func WithActorSystem(system *actor.ActorSystem) OpenOption {
	return func(r *openRequest) {
		if system == nil {
			r.invalid = errors.New("the actor system is nil")
		}
		r.actors = system
	}
}

// WithTLS connects with TLS, also to Sentinels and even if the URL begins with redis://. Set RootCAs for a private CA,
// and Certificates for client certificates. Without a ServerName, the certificate of each server must be for the host
// name in its address or for a name in the URL.
func WithTLS(c *tls.Config) OpenOption {
	return func(r *openRequest) {
		if c == nil { // the connection would not use TLS
			r.invalid = errors.New("the configuration of WithTLS is nil")
		}
		r.amend = append(r.amend, func(o *rueidis.ClientOption) { o.TLSConfig, o.Sentinel.TLSConfig = c, c })
	}
}

// WithUser authenticates to the servers, but not to Sentinels, as an ACL user; an empty name is the
// default user. Use it for a password that is not in the URL.
func WithUser(name, password string) OpenOption {
	return func(r *openRequest) {
		r.amend = append(r.amend, func(o *rueidis.ClientOption) {
			o.Username, o.Password, o.AuthCredentialsFn = name, password, nil
		})
	}
}

// WithClientOption lets f change the options of the Redis client, for settings that neither the URL nor another option
// of Open covers, such as a dialer, or another user or TLS configuration for the Sentinels (o.Sentinel).
// o.AuthCredentialsFn is for the servers alone. Open calls f once, after it has applied the URL and the other options.
// With an empty URL, f must set the addresses. Open disables retries and the client-side cache.
func WithClientOption(f func(o *rueidis.ClientOption)) OpenOption {
	return func(r *openRequest) {
		if f == nil {
			r.invalid = errors.New("the function of WithClientOption is nil")
		}
		r.final = append(r.final, f)
	}
}

// Open connects to the Redis of a URL, and starts a System in a new actor system, or in the system given to
// WithActorSystem. Open does the work of Connect and New; see redisio.Connect for the URLs, which may name Sentinels
// and clusters. Close of the System also closes the client, and the actor system if Open has created it. Without a
// Config.Logger nothing is logged; with WithActorSystem, the logger of that actor system is used.
//
// ctx bounds the time to connect; it need not end, since a server that does not answer is given up after a few seconds.
// The error is ErrInvalid if the URL or an option is wrong, for instance if the URL names Sentinels and lacks
// master_set. It is ErrUnavailable if Redis does not answer, the file of option password_file cannot be read, or ctx
// ends; trying again may help. It is ErrRejected if Redis refuses the client, if one side does not accept the TLS
// certificate of the other, or if a server of a cluster refuses to list the other servers.
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
	if r.invalid != nil {
		return nil, fmt.Errorf("lockkeeper: %s: %w: %w", op, ErrInvalid, r.invalid)
	}
	client, err := r.connect(ctx, url)
	if client, err = connectResult(op, client, err); err != nil {
		return nil, err
	}
	o := &openedResources{client: client, closed: make(chan struct{})}
	system := r.actors
	if system == nil {
		o.actors = ownActors(o.logHandler(r.config.Logger))
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
	if url != "" || len(r.final) == 0 {
		var err error
		if options, err = redisio.Options(url); err != nil {
			return nil, err
		}
	}
	for _, change := range append(r.amend, r.final...) {
		change(&options)
	}
	return redisio.ConnectWith(ctx, options)
}

// ownActors returns a new actor system for Open.
func ownActors(logs slog.Handler) *actor.ActorSystem {
	logger := printable.Logger(slog.New(logs)) // the actor system logs names of locks, too
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond)) // the throttle has a goroutine for that long
}

// openedResources are the resources that Open has created for its System, and that Close closes.
type openedResources struct {
	client rueidis.Client
	actors *actor.ActorSystem // nil if the actor system is the caller's
	logs   *host.Handler      // of actors; nil if there is no logger
	once   sync.Once
	closed chan struct{}
}

// logHandler returns the log handler of an actor system that Open creates. The handler of logger may block or panic.
func (o *openedResources) logHandler(logger *slog.Logger) slog.Handler {
	if logger == nil {
		return slog.DiscardHandler
	}
	o.logs = host.NewHandler(logger)
	return o.logs
}

func (o *openedResources) close() {
	o.client.Close()
	if o.actors != nil {
		o.actors.Shutdown()
	}
	if o.logs != nil {
		o.logs.Flush()
	}
	close(o.closed)
}

// closeAfter calls close once the System has ended, and waits for the end of close or of ctx.
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
