package redisio

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/lockkeeper-go/lockkeeper/internal/redistest"
	"github.com/lockkeeper-go/lockkeeper/scripts"
)

func TestMain(m *testing.M) {
	// The client's look whether it speaks to a cluster leaves this behind: asleep, for a second.
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// connect is a client that is closed when the test ends.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	client, err := Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// open is a Redis that is closed when the test ends.
func open(t testing.TB, client rueidis.Client) *Redis {
	t.Helper()
	r := New(client, 10*time.Millisecond)
	t.Cleanup(r.Close)
	return r
}

func lua(source string, reply scripts.Shape) *scripts.Script {
	return scripts.New("test", source, reply)
}

// number is the shape of a reply that is one number.
var number = scripts.Shape{Numbers: 1}

// soon is a deadline that only a test that fails sees pass.
func soon() time.Time { return time.Now().Add(redistest.Limit) }
