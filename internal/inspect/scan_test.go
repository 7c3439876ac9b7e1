package inspect

import (
	"math"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lockkeeper-go/lockkeeper/internal/testing/locktest"
	"github.com/lockkeeper-go/lockkeeper/internal/testing/redistest"
)

const (
	someClient = "0a1b2c3d-0000-4000-8000-000000000001"
	someOwner  = someClient + ":7"
)

func scanned(t *testing.T) (*redistest.Server, Inspector) {
	t.Helper()
	server := redistest.Start(t)
	client := locktest.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}}))(t)
	t.Cleanup(client.Close)
	return server, Inspector{Client: client}
}

// A key of another application may be an id like that at the end of a command record, and nothing else.
func TestFind_PassesOverKeysThatAreIDs(t *testing.T) {
	t.Parallel()
	server, in := scanned(t)
	server.Do(t, "SET", someClient, "a session")
	server.Do(t, "HSET", "0-orders", someOwner, "1")
	all, _, err := in.Find(locktest.Within(t), "0*")
	if err != nil || len(all) != 1 || all[0].Name != "0-orders" {
		t.Errorf("found %+v, %v", all, err)
	}
}

// SCAN may return a key twice, also in the SCANs of one page.
func TestList_ShowsALockOnce(t *testing.T) {
	t.Parallel()
	server, in := scanned(t)
	server.Do(t, "HSET", "orders", someOwner, "1")
	all, err := in.list(locktest.Within(t), math.MaxInt, func(page func(keys []string) error) error {
		return page([]string{"orders", "invoices", "orders"})
	})
	if err != nil || len(all) != 1 {
		t.Errorf("listed %+v, %v", all, err)
	}
}
