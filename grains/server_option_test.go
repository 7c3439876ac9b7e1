//go:build !race

package grains

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/quiet"
)

// remoteNode returns an actor system with a remote.
func remoteNode(t *testing.T) *actor.ActorSystem {
	system := quiet.ActorSystem()
	r := remote.NewRemote(system, remote.Configure("127.0.0.1", 0, remote.WithServerOptions(ServerOption(system))))
	r.Start()
	t.Cleanup(func() { r.Shutdown(false); system.Shutdown() })
	return system
}

// A message of a type that its receiver does not link is refused, and those before and behind it are handled.
func TestServerOption_RefusesUnlinkedTypes(t *testing.T) {
	t.Parallel()
	a, b := remoteNode(t), remoteNode(t)
	echo, err := b.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, is := ctx.Message().(*wrapperspb.StringValue); is {
			ctx.Respond(m)
		}
	}), "echo")
	if err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("unlinked.proto"), Package: proto.String("unlinked"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Deposit")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlinked := dynamicpb.NewMessage(file.Messages().ByName("Deposit"))
	to := actor.NewPID(b.Address(), echo.Id)
	var readable, others []*actor.Future
	for i := range 50 {
		readable = append(readable, a.Root.RequestFuture(to, wrapperspb.String(fmt.Sprint(i)), time.Minute))
		others = append(others, a.Root.RequestFuture(to, unlinked, time.Minute))
		a.Root.Send(to, unlinked)
	}
	for i := range readable {
		if answer, err := readable[i].Result(); err != nil || answer.(*wrapperspb.StringValue).Value != fmt.Sprint(i) {
			t.Errorf("%d is answered with %v: %v", i, answer, err)
		}
		if _, err := others[i].Result(); !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("the message that cannot be read is answered with %v", err)
		}
	}

	// A message over which the remote panics ends the connection on which it came, and no other connection.
	connection, err := grpc.Dial(b.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	stream, err := remote.NewRemotingClient(connection).Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrong := &remote.MessageBatch{TypeNames: []string{"google.protobuf.StringValue"}, Envelopes: []*remote.MessageEnvelope{{Target: 7}}}
	if err := stream.Send(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: wrong}}); err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); err == nil {
		t.Errorf("the connection goes on with %v", m)
	}
	if _, err := a.Root.RequestFuture(to, wrapperspb.String("again"), time.Minute).Result(); err != nil {
		t.Error(err)
	}
}
