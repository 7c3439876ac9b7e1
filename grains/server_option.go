package grains

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// ServerOption makes proto.actor's remote survive messages that it cannot read. Otherwise a message of a protobuf type
// that this process does not link ends the process: another node, perhaps of a newer version, can end it. With this
// option the message becomes a dead letter, so its sender is answered with [actor.DeadLetterResponse], and the type is
// logged. A message that the remote cannot handle for another reason ends the connection. Use this option in every
// program that uses the remote, with grains or without:
//
//	remote.Configure(host, port, remote.WithServerOptions(grains.ServerOption(system)))
//
// WithServerOptions replaces the options of an earlier call: pass all in one call.
func ServerOption(system *actor.ActorSystem) grpc.ServerOption {
	if system == nil {
		return grpc.EmptyServerOption{}
	}
	return grpc.ChainStreamInterceptor(func(
		server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler,
	) (err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				system.Logger().Error("a connection from another node is closed, since the remote has panicked", "panic", panicked)
				err = status.Error(codes.Internal, "the remote has panicked")
			}
		}()
		return handle(server, &readableStream{ServerStream: stream, system: system})
	})
}

// readableStream takes messages of types that are not linked from the batches of a connection.
type readableStream struct {
	grpc.ServerStream
	system *actor.ActorSystem
	logged string // the type that was logged last
}

// protobufSerializer is the number of proto.actor's serializer that needs the type to be linked.
const protobufSerializer = 0

// RecvMsg implements grpc.ServerStream.
func (s *readableStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	received, _ := m.(*remote.RemoteMessage)
	if batch := received.GetMessageBatch(); batch != nil {
		batch.Envelopes = slices.DeleteFunc(batch.Envelopes, func(e *remote.MessageEnvelope) bool {
			name := batch.TypeNames[e.TypeId]
			if e.SerializerId != protobufSerializer || linked(name) {
				return false
			}
			s.refuse(batch, e, name)
			return true
		})
	}
	return nil
}

func linked(name string) bool {
	_, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	return err == nil
}

// refuse turns a message into a dead letter.
func (s *readableStream) refuse(batch *remote.MessageBatch, e *remote.MessageEnvelope, name string) {
	target := batch.Targets[e.Target]
	if s.logged != name {
		s.logged = name
		s.system.Logger().Error("another node has sent a message of a type that this process does not link", "type", name, "to", target)
	}
	envelope := &actor.MessageEnvelope{Message: "a message of the type " + name}
	if e.Sender > 0 {
		from := batch.Senders[e.Sender-1]
		envelope.Sender = &actor.PID{Address: from.Address, Id: from.Id, RequestId: e.SenderRequestId}
	}
	s.system.DeadLetter.SendUserMessage(target, envelope)
}
